import type { DataFormat } from '../../contract/dataFormats.ts';
import { emptyMapping, type Mapping, type RowFormat } from './schema/mapping.ts';
import { defaultLimits, type ReadLimits } from './readers/rows.ts';

export interface Supervise {
  turns: 'assistant' | 'last' | 'all';
  /** Whether what the assistant thinks is learned too; an empty reasoning block counts as reasoning. */
  reasoning: boolean;
}

/** How files are read; what of it differs makes another dataset. */
export interface ReadOptions {
  /** Forces the file's format; absent: told by its content. */
  fileFormat?: DataFormat | undefined;
  /** Forces what every row is; absent: told row by row. */
  rowFormat?: RowFormat | undefined;
  mapping: Mapping;
  limits: ReadLimits;
}

/** How rows become tokens; what of it differs makes another cache. */
export interface TokenOptions {
  /** A named template of the model folder. */
  templateName?: string | undefined;
  /** Variables that the template sees beside the messages, e.g. `enable_thinking`. */
  templateArguments: Record<string, unknown>;
  supervise: Supervise;
}

export const defaultReadOptions: ReadOptions = { mapping: emptyMapping, limits: defaultLimits };

export const defaultTokenOptions: TokenOptions = {
  templateArguments: {},
  supervise: { turns: 'assistant', reasoning: true },
};
