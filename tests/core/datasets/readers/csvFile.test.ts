import { describe, expect, it } from 'vitest';
import { readCsv } from '../../../../main/core/datasets/readers/csvFile.ts';
import { defaultLimits } from '../../../../main/core/datasets/readers/rows.ts';
import { inChunks, joined } from '../fixtures.ts';

async function read(content: string | Buffer): Promise<unknown[]> {
  const items = await joined(readCsv(inChunks(content), defaultLimits));
  return items.map((item) =>
    'value' in item
      ? { ...item, value: Object.fromEntries(Array.from(item.value.entries())) as unknown }
      : item,
  );
}

describe('CSV', () => {
  it('keeps quoted newlines, counts physical lines and leaves values text', async () => {
    expect(await read('\ufeffprompt,completion\r\n"a\nb","007"\r\n\r\n"x ""y""",\r\n')).toEqual([
      { at: { line: 2 }, value: { prompt: 'a\nb', completion: '007' } },
      { at: { line: 5 }, value: { prompt: 'x "y"', completion: '' } },
    ]);
  });

  it('counts a line end inside a value once, whichever it is', async () => {
    expect(await read('a,text\r\n"x\r\n\r\ny",1\r\n2,"u\nv"\r\n3\r\n')).toEqual([
      { at: { line: 2 }, value: { a: 'x\r\n\r\ny', text: '1' } },
      { at: { line: 5 }, value: { a: '2', text: 'u\nv' } },
      { at: { line: 7 }, problem: '1 values for 2 columns' },
    ]);
  });

  it('ends lines at LF and at CR LF in one file; at CR where the header ends so', async () => {
    const rows = [
      { at: { line: 2 }, value: { a: '1', text: '2' } },
      { at: { line: 3 }, value: { a: '3', text: '4' } },
    ];
    expect(await read('a,text\r\n1,2\n"3",4\n')).toEqual(rows);
    expect(await read('a,text\n1,2\r\n"3",4\r\n')).toEqual(rows);
    expect(await read('a,text\r1,"2\n"\r3,4\r')).toMatchObject([
      { value: { a: '1', text: '2\n' } },
      { value: { a: '3', text: '4' } },
    ]);
  });

  it('loses the row alone whose quote closes too early', async () => {
    const problem = expect.stringContaining('text follows a closing quote') as string;
    expect(await read('a,text\n"1" x,b\n2,c\n"u\nv" w,d\n3,"e"\n"4""",f\n')).toEqual([
      { at: { line: 3 }, value: { a: '2', text: 'c' } },
      { at: { line: 6 }, value: { a: '3', text: 'e' } },
      { at: { line: 7 }, value: { a: '4"', text: 'f' } },
      { at: { line: 2 }, problem },
      { at: { line: 4 }, problem },
    ]);
  });

  it('tells semicolons and tabs from commas, and takes any column name', async () => {
    expect(await read('text;"a, ""b"" 😀"\nx;y\n')).toEqual([
      { at: { line: 2 }, value: { text: 'x', 'a, "b" 😀': 'y' } },
    ]);
    expect(await read('text\tb\nx\ty\n')).toEqual([{ at: { line: 2 }, value: { text: 'x', b: 'y' } }]);
  });

  it('names the row that is not UTF-8 and reads the others', async () => {
    const content = Buffer.concat([Buffer.from('text\nä\n'), Buffer.from([0xe9, 10]), Buffer.from('b\n')]);
    expect(await read(content)).toMatchObject([
      { at: { line: 2 }, value: { text: 'ä' } },
      { at: { line: 3 }, problem: expect.stringContaining('not UTF-8') as string },
      { at: { line: 4 }, value: { text: 'b' } },
    ]);
  });

  it('names a row with too many or too few values', async () => {
    expect(await read('a,text\n1\n1,2\n1,2,3\n')).toMatchObject([
      { at: { line: 2 }, problem: '1 values for 2 columns' },
      { at: { line: 3 }, value: { text: '2' } },
      { at: { line: 4 }, problem: '3 values for 2 columns' },
    ]);
  });

  it('names the line where an unclosed quote opened', async () => {
    await expect(read('text\nfine\n"never\nclosed\nto the end\n')).rejects.toThrow('line 3');
  });

  it('names columns without a name by their place', async () => {
    expect(await read(',text,,\n0,a,,\n')).toEqual([
      { at: { line: 2 }, value: { 'column 1': '0', text: 'a', 'column 3': '', 'column 4': '' } },
    ]);
  });

  it('refuses a column that appears twice', async () => {
    await expect(read('text,a,text\n1,2,3\n')).rejects.toThrow("'text' appears twice");
  });
});
