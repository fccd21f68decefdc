/**
 * Writes made-up two-turn chats for benchmarks: `makeChats.ts OUT.jsonl [rows] [seed]`, or OUT.parquet. About 1,150
 * characters a chat, lengths spread as real ones are (log-normal), words with a long tail, punctuation, some numbers.
 */
import { createWriteStream, rmSync } from 'node:fs';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { DuckDBInstance } from '@duckdb/node-api';
import { makeWords, Sentences } from './sentences.ts';

const { positionals } = parseArgs({ allowPositionals: true });
const [out, rowsText = '200000', seedText = '1'] = positionals;
if (out === undefined) throw new Error('usage: makeChats.ts OUT.jsonl|OUT.parquet [rows] [seed]');

const sentences = new Sentences(Number(seedText), makeWords(Number(seedText), 6000));
const isParquet = out.endsWith('.parquet');
const lines = isParquet ? `${out}.jsonl` : out;
const stream = createWriteStream(lines, { highWaterMark: 1 << 22 });
const messages = () => [
  { role: 'user', content: sentences.text(60 + sentences.logNormal(120, 0.7)) },
  { role: 'assistant', content: sentences.text(80 + sentences.logNormal(620, 0.7)) },
];
let numChars = 0;
for (let row = 0; row < Number(rowsText); row++) {
  const line = `${JSON.stringify({ messages: messages() })}\n`;
  numChars += line.length;
  if (!stream.write(line)) await once(stream, 'drain');
}
stream.end();
await once(stream, 'finish');
if (isParquet) {
  const connection = await (await DuckDBInstance.create(':memory:', { memory_limit: '1GB' })).connect();
  const columns = "{messages: 'STRUCT(role VARCHAR, content VARCHAR)[]'}";
  await connection.run(
    `COPY (SELECT * FROM read_json('${lines}', format = 'newline_delimited', columns = ${columns})) TO '${out}' (FORMAT parquet, COMPRESSION zstd)`,
  );
  connection.closeSync();
  rmSync(lines);
}
process.stderr.write(`${out}: ${rowsText} chats, ${numChars.toLocaleString('en')} characters\n`);
