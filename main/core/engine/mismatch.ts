import type { z } from 'zod';
import { TesseraError } from '../../contract/errors.ts';
import { version } from '../version.ts';
import { engineBinary } from './binary.ts';

/** An engine of another protocol. */
export function protocolMismatch(theirs: number, ours: number): TesseraError {
  return new TesseraError(
    'engineProtocol',
    `the engine ${engineBinary()} speaks protocol ${String(theirs)}, this program ${String(ours)}`,
    rebuildHint(),
  );
}

/** An engine whose answer or event has another shape than this program knows: it was built from other sources. */
export function shapeMismatch(what: string, error: z.ZodError, theirs?: string): TesseraError {
  const unlike = error.issues.slice(0, 3).map(describeIssue).join(', ');
  const named = theirs === undefined ? '' : `version ${theirs}, `;
  return new TesseraError(
    'engineMismatch',
    `the engine ${engineBinary()} (${named}this program is ${version}) was built from other sources: in its ${what} ${unlike}`,
    rebuildHint(),
  );
}

function rebuildHint(): string {
  const { TESSERA_ENGINE: named = '' } = process.env;
  if (named !== '') return 'Unset TESSERA_ENGINE, or let it name an engine of this version.';
  return 'In a clone npm start builds it again; elsewhere install Tessera again.';
}

function describeIssue(issue: z.core.$ZodIssue): string {
  const where = issue.path.map(String).join('.') || 'everything';
  const isMissing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined');
  return isMissing ? `${where} is missing` : `${where} is wrong (${issue.message})`;
}
