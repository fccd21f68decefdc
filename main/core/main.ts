import { enableCompileCache } from 'node:module';
import { parseArgs } from 'node:util';

// Before anything else is loaded: compiled modules are kept between starts.
enableCompileCache();
const { closeInherited } = await import('./inheritedFiles.ts');
const { toErrorBody } = await import('../contract/errors.ts');
const { startCore } = await import('./core.ts');
const { defaultHome } = await import('./homeFolder.ts');
const { processPort } = await import('./ports.ts');

/**
 * The core as a program: `node main/core/main.ts --home DIR [--serve-parent] [--grace MS] [--close FILES]`.
 * A parent with an IPC channel hears `{ready:true}` or `{failed:{code,message,hint}}` first. With `--serve-parent`
 * the channel then carries the contract (the app); without it the channel ends there (a command, which goes on
 * over the socket).
 */
const { values } = parseArgs({
  options: {
    home: { type: 'string' },
    'serve-parent': { type: 'boolean', default: false },
    grace: { type: 'string', default: '2000' },
    close: { type: 'string', default: '[]' },
  },
});
closeInherited(values.close);

try {
  const core = await startCore({
    home: values.home ?? defaultHome(),
    graceMs: Number(values.grace),
    // Exits by itself would wait for whatever handle somebody forgot.
    onClosed: () => setImmediate(() => process.exit(0)),
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => void core.close(signal));
  process.on('uncaughtException', (error) => void core.close(`fault: ${error.stack ?? error.message}`));
  await tellParent({ ready: true });
  if (values['serve-parent']) core.attach(processPort(process));
  else if (process.connected) process.disconnect();
} catch (error) {
  const failed = toErrorBody(error);
  await tellParent({ failed });
  process.stderr.write(`${failed.message}\n`);
  process.exit(1);
}

function tellParent(message: unknown): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined) resolve();
    else
      process.send(message, () => {
        resolve();
      });
  });
}
