import type { RunStatus } from '../../main/contract/runs.ts';

/** How a run's state is called and drawn. */
export const statusLooks: Record<RunStatus, { word: string; shape: string }> = {
  queued: { word: 'waiting', shape: 'stop' },
  running: { word: 'training', shape: 'run' },
  paused: { word: 'paused', shape: 'stop' },
  completed: { word: 'finished', shape: 'done' },
  stopped: { word: 'stopped', shape: 'stop' },
  failed: { word: 'failed', shape: 'fail' },
};
