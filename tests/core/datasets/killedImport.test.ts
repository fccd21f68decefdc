import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { attachCore } from '../../../main/core/attach.ts';
import { Random } from '../../../main/core/random.ts';
import { chatMl, makeModel, tempFolder, writeFiles } from './fixtures.ts';

const chat = (i: number) =>
  JSON.stringify({
    messages: [
      { role: 'user', content: `Question ${String(i)}? ${'more words '.repeat(10)}` },
      { role: 'assistant', content: `Answer ${String(i)}. ${'and so on '.repeat(20)}` },
    ],
  });
const numRows = 8_000;
/** More of them for a soak. */
const rounds = Number(process.env['TESSERA_KILL_ROUNDS'] ?? 1);

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await delay(5);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it('a core killed in mid-import leaves nothing half-written, says so, and imports anew', async () => {
  const home = tempFolder();
  const folder = writeFiles({ 'chats.jsonl': Array.from({ length: numRows }, (_, i) => chat(i)).join('\n') });
  const model = makeModel({ template: chatMl });
  const args = { paths: [join(folder, 'chats.jsonl')], model, name: 'killed' };
  const random = new Random(Date.now());
  const caches = join(home, 'caches');

  for (let round = 0; round < rounds; round++) {
    const core = await attachCore(home);
    const { pid } = await core.call('system:info', {});
    const ended = core.call('datasets:import', args).then(
      () => 'whole',
      () => 'lost',
    );
    // The blow falls some way on from where the cache is begun.
    await Promise.race([ended, until(() => existsSync(caches) && readdirSync(caches).length > 0)]);
    await delay(random.below(250));
    process.kill(pid, 'SIGKILL');
    const how = await ended;
    core.close();
    await until(() => !isAlive(pid));

    const next = await attachCore(home);
    const { datasets, interrupted } = await next.call('datasets:list', {});
    next.close();
    expect(readdirSync(caches).filter((name) => name.endsWith('.partial'))).toEqual([]);
    // It may have been done before the blow.
    if (how === 'whole') break;
    expect(datasets).toEqual([]);
    expect(interrupted).toMatchObject([{ args: { paths: args.paths, name: 'killed' } }]);
  }

  const core = await attachCore(home);
  const { dataset } = await core.call('datasets:import', args);
  expect(dataset.rows).toBe(numRows);
  const list = await core.call('datasets:list', {});
  expect(list).toEqual({ datasets: [dataset] });
  expect(readdirSync(join(home, 'imports'))).toEqual([]);
  const [key = ''] = readdirSync(caches);
  expect(existsSync(join(caches, key, 'cache.json'))).toBe(true);
  core.close();
}, 180_000);
