import { counted } from '../contract/counted.ts';
import type { RunSummary } from '../contract/runs.ts';
import type { CoreSettings } from '../contract/settings.ts';

/** Whether the person wants to be told of this end. */
export function isWanted(run: RunSummary, { ended, failed }: CoreSettings['notifications']): boolean {
  return run.status === 'failed' ? failed : ended;
}

const loss = (value: number | undefined) => (value === undefined ? undefined : value.toFixed(3));

/** What a person who is elsewhere wants to know: which run, how it ended, and whether it learnt anything. */
export function describeEnd(run: RunSummary): { title: string; body: string } {
  const [before, after] = [loss(run.firstLoss), loss(run.lastLoss)];
  const learnt = before === undefined || after === undefined ? '' : ` Loss ${before} to ${after}.`;
  const steps = `${run.steps.toLocaleString('en-US')} of ${counted(run.plannedSteps, 'step')}.`;
  const titles: Partial<Record<RunSummary['status'], string>> = {
    completed: `${run.name} is trained`,
    stopped: `${run.name} was stopped`,
    failed: `${run.name} failed`,
  };
  const reason = run.status === 'completed' || run.reason === undefined ? '' : `${run.reason}. `;
  return { title: titles[run.status] ?? run.name, body: `${reason}${steps}${learnt}` };
}
