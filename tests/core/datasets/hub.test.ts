import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { downloadFromHub, hubAccess, parseHubName, type HubAccess } from '../../../main/core/datasets/hub.ts';
import { planRun } from '../../../main/core/runs/planRun.ts';
import { loadPreset } from '../../../main/core/runs/recipe.ts';
import { openRunData } from '../../../main/core/runs/runData.ts';
import { call, makeModel, openDatasets, tempFolder } from './fixtures.ts';

const row = (text: string) => `${JSON.stringify({ text })}\n`;
const ownFiles: Record<string, string> = {
  'README.md': '# a dataset',
  'data/train-00000-of-00002.jsonl': row('one').repeat(50),
  'data/train-00001-of-00002.jsonl': row('two').repeat(50),
  'data/test-00000-of-00001.jsonl': row('three'),
};

const chat = (i: number) => {
  const messages = [
    { role: 'user', content: `Question ${String(i)}?` },
    { role: 'assistant', content: `Answer ${String(i)}.` },
  ];
  return `${JSON.stringify({ prompt: 'Question', prompt_id: String(i), messages })}\n`;
};
/** A repository laid out as that of the published experiment is. */
const ultrachat: Record<string, string> = {
  'data/test_gen-00000-of-00001.jsonl': 'not asked for',
  'data/train_gen-00000-of-00001.jsonl': 'not asked for',
  'data/train_sft-00000-of-00002.jsonl': [1, 2, 3].map(chat).join(''),
  'data/train_sft-00001-of-00002.jsonl': [4, 5].map(chat).join(''),
};

/** Answers as the hub does: the tree of a repository, and files by ranges. */
function standIn(requests: string[], repository = 'me/chats', files = ownFiles): Server {
  return createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://hub');
    requests.push(`${url.pathname} ${request.headers.range ?? ''}`.trim());
    if (request.headers.authorization !== 'Bearer hf_secret') {
      response.writeHead(401).end('{"error":"who are you"}');
      return;
    }
    if (url.pathname === `/api/datasets/${repository}/tree/main`) {
      const entries = Object.entries(files).map(([path, text]) => {
        const oid = createHash('sha256').update(text).digest('hex');
        return {
          type: 'file',
          path,
          size: text.length,
          oid,
          lfs: { oid, size: text.length, pointerSize: 1 },
        };
      });
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(entries));
      return;
    }
    const text = files[decodeURIComponent(url.pathname.replace(`/datasets/${repository}/resolve/main/`, ''))];
    if (text === undefined) {
      response.writeHead(404).end('{"error":"not here"}');
      return;
    }
    const [, from = '0', to = ''] = /bytes=(\d+)-(\d*)/.exec(request.headers.range ?? '') ?? [];
    const end = to === '' ? text.length - 1 : Math.min(Number(to), text.length - 1);
    const range = `bytes ${from}-${String(end)}/${String(text.length)}`;
    response.writeHead(206, { 'Content-Range': range, ETag: '"x"' }).end(text.slice(Number(from), end + 1));
  });
}

describe('a dataset of the hub', () => {
  const requests: string[] = [];
  let server: Server;
  let access: HubAccess;

  beforeEach(async () => {
    requests.length = 0;
    server = standIn(requests);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    access = { url: `http://127.0.0.1:${String(port)}`, token: 'hf_secret', answerLimitMs: 4500 };
  });
  afterEach(() => {
    server.close();
  });

  const download = (name: string, root: string, with_: Partial<HubAccess> = {}) =>
    downloadFromHub(parseHubName(name), root, { ...access, ...with_ }, call());

  it('is downloaded once: the training split by default, another by name', async () => {
    const root = tempFolder();
    const paths = await download('hub:me/chats', root);
    expect(paths.map((path) => readFileSync(path, 'utf8'))).toEqual([
      row('one').repeat(50),
      row('two').repeat(50),
    ]);
    const numRequests = requests.length;
    expect(await download('hub:me/chats', root)).toEqual(paths);
    expect(requests.slice(numRequests)).toEqual(['/api/datasets/me/chats/tree/main']);
    const [test] = await download('hub:me/chats@main#test', root);
    expect(readFileSync(test ?? '', 'utf8')).toBe(row('three'));
    await expect(download('hub:me/chats#dev', root)).rejects.toThrow("split 'dev'");
    // The token went with the requests and nowhere else.
    const written = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    expect(written).toHaveLength(3);
    for (const { parentPath, name } of written) {
      expect(join(parentPath, name) + readFileSync(join(parentPath, name), 'utf8')).not.toContain(
        'hf_secret',
      );
    }
  });

  it('goes on where an interrupted download was, and refuses what arrives damaged', async () => {
    const root = tempFolder();
    const [first = ''] = await download('hub:me/chats#test', root);
    const whole = readFileSync(first, 'utf8');
    const folder = join(first, '..');
    for (const name of readdirSync(folder)) expect(name).not.toMatch(/part$/);
    const other = tempFolder();
    const again = join(other, first.slice(root.length));
    mkdirSync(join(again, '..'), { recursive: true });
    writeFileSync(`${again}.part`, whole.slice(0, 7));
    await download('hub:me/chats#test', other);
    expect(readFileSync(again, 'utf8')).toBe(whole);
    expect(requests.at(-1)).toMatch(/bytes=7-/);

    const damaged = tempFolder();
    const broken = join(damaged, first.slice(root.length));
    mkdirSync(join(broken, '..'), { recursive: true });
    writeFileSync(`${broken}.part`, 'xxxxxxx');
    await expect(download('hub:me/chats#test', damaged)).rejects.toThrow('arrived damaged');
    expect(existsSync(`${broken}.part`)).toBe(false);
  });

  it('that is not there, not allowed or not reachable is named, soon', async () => {
    const root = tempFolder();
    await expect(download('hub:me/nothing', root)).rejects.toMatchObject({ code: 'noHubDataset' });
    const noToken = download('hub:me/chats', root, { token: undefined });
    await expect(noToken).rejects.toMatchObject({ code: 'hubForbidden' });
    const refused = download('hub:me/chats', root, { url: 'http://127.0.0.1:9' });
    await expect(refused).rejects.toMatchObject({ code: 'hubUnreachable' });
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${String((silent.address() as AddressInfo).port)}`;
    await expect(download('hub:me/chats', root, { url, answerLimitMs: 200 })).rejects.toThrow(
      'no answer within',
    );
    silent.closeAllConnections();
    silent.close();
  });
});

it(
  'the published experiment begins with the name of its dataset alone; the token is written nowhere',
  { timeout: 60_000 },
  async () => {
    const requests: string[] = [];
    const server = standIn(requests, 'HuggingFaceH4/ultrachat_200k', ultrachat);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    vi.stubEnv('HF_ENDPOINT', `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
    vi.stubEnv('HF_TOKEN', 'hf_secret');
    try {
      const home = tempFolder();
      const { datasets } = await openDatasets(home);
      const recipe = loadPreset('ultrachat', [`model=${makeModel()}`]);
      const data = await openRunData(datasets, recipe, call());
      const { summary } = planRun(recipe, data.train);
      expect(summary).toMatchObject({ examples: 5, budget: 8192, strategy: 'best-fit', bins: 1, steps: 1 });
      data.release();
      const downloaded = requests.filter((each) => each.includes('/resolve/'));
      expect(downloaded.length).toBeGreaterThan(0);
      for (const each of downloaded) expect(each).toContain('data/train_sft-');
      const written = readdirSync(home, { recursive: true, withFileTypes: true }).filter((one) =>
        one.isFile(),
      );
      expect(written.length).toBeGreaterThan(3);
      for (const { parentPath, name } of written)
        expect(readFileSync(join(parentPath, name)).includes('hf_secret'), name).toBe(false);
    } finally {
      vi.unstubAllEnvs();
      server.closeAllConnections();
      server.close();
    }
  },
);

it('names of the hub are read, the rest refused', () => {
  expect(parseHubName('hub:a/b@v1.0#test')).toEqual({ name: 'a/b', revision: 'v1.0', split: 'test' });
  expect(parseHubName('hub:a/b')).toEqual({ name: 'a/b', revision: 'main', split: undefined });
  expect(() => parseHubName('hub:../../etc')).toThrow('names no dataset');
  expect(hubAccess({ HF_TOKEN: 'hf_t', HF_ENDPOINT: 'http://x/' })).toMatchObject({
    url: 'http://x',
    token: 'hf_t',
  });
  expect(() => hubAccess({ HF_TOKEN: 'mine' })).toThrow('HF_TOKEN');
  expect(hubAccess({}).answerLimitMs).toBeLessThan(4000);
});
