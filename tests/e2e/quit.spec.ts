import type { ElectronApplication } from '@playwright/test';
import { coreOf, expect, startRun, test, untilGone, untilReady, untilStatus, untilStep } from './fixture.ts';

test('with nothing going, quitting leaves nothing running', async ({ home, open }) => {
  const { app, page } = await open();
  await untilReady(page);
  await app.close();
  await untilGone(home);
});

/** Answers the question that quitting asks, and says what was asked. */
async function answerQuestion(app: ElectronApplication, response: number): Promise<void> {
  await app.evaluate(({ dialog }, answer) => {
    process.env.TESSERA_NO_DIALOGS = '0';
    dialog.showMessageBox = ((options: Electron.MessageBoxOptions) => {
      (globalThis as { asked?: string }).asked = options.message;
      return Promise.resolve({ response: answer, checkboxChecked: false });
    }) as typeof dialog.showMessageBox;
  }, response);
}

test('quitting with a run going asks: cancelled, then kept training, then stopped', async ({
  home,
  open,
}) => {
  const first = await open();
  await untilReady(first.page);
  const core = await coreOf(home);
  const run = await startRun(core, { steps: 4000 });
  await untilStep(core, run.id, 1);
  await expect(first.page.getByRole('contentinfo', { name: 'Status' })).toContainText('Training');

  await answerQuestion(first.app, 2);
  await first.app.evaluate(({ app }) => {
    app.quit();
  });
  await expect
    .poll(() => first.app.evaluate(() => (globalThis as { asked?: string }).asked))
    .toBe('night shift is still training.');
  await expect(first.page.getByRole('navigation', { name: 'Views' })).toBeVisible();

  await answerQuestion(first.app, 0);
  await first.app.close();
  const before = (await core.call('runs:show', { id: run.id })).run;
  expect(before.status).toBe('running');
  await untilStep(core, run.id, before.steps + 1);

  const second = await open();
  await expect(second.page.getByRole('contentinfo', { name: 'Status' })).toContainText('night shift');
  await answerQuestion(second.app, 1);
  await second.app.close();
  await untilStatus(core, run.id, 'stopped');
  const { run: stopped } = await core.call('runs:show', { id: run.id });
  expect(stopped.checkpointStep).toBe(stopped.steps);
  core.close();
  await untilGone(home);
});
