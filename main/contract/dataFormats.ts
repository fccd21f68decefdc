/** What a file of examples may be, each with how its name ends; a new one joins here and `readers/readFile.ts`. */
export const dataFormats = {
  jsonl: ['jsonl', 'ndjson'],
  json: ['json'],
  parquet: ['parquet'],
  csv: ['csv', 'tsv'],
  txt: ['txt', 'text', 'md'],
} as const;
export type DataFormat = keyof typeof dataFormats;

/** `jsonl, json, parquet, csv, txt`. */
export const dataFormatNames = Object.keys(dataFormats).join(', ');

export const compressionEndings = ['gz', 'zst', 'zstd'] as const;

/** How the name of a data file ends, without the dot. */
export const dataEndings = [...Object.values(dataFormats).flat(), ...compressionEndings];
