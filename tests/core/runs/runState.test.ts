import { describe, expect, it } from 'vitest';
import { runStatuses } from '../../../main/contract/runs.ts';
import { nextEngineState, type EngineState } from '../../../main/core/engine/engineState.ts';
import { isEnded, nextRunState, type RunEvent, type RunState } from '../../../main/core/runs/runState.ts';

const stateOf = (status: (typeof runStatuses)[number]): RunState =>
  status === 'stopped' || status === 'failed' ? { status, reason: 'why' } : { status };

describe('a run', () => {
  it('goes through a whole life', () => {
    const events: RunEvent[] = [
      { kind: 'started' },
      { kind: 'paused' },
      { kind: 'resumed' },
      { kind: 'failed', reason: 'the engine died' },
      { kind: 'requeued' },
      { kind: 'started' },
      { kind: 'completed' },
    ];
    let state: RunState = { status: 'queued' };
    const seen = events.map((event) => (state = nextRunState(state, event) ?? state).status);
    expect(seen).toEqual(['running', 'paused', 'running', 'failed', 'queued', 'running', 'completed']);
  });

  it('never leaves its end but by being queued again', () => {
    const late: RunEvent[] = [
      { kind: 'started' },
      { kind: 'paused' },
      { kind: 'resumed' },
      { kind: 'completed' },
      { kind: 'failed', reason: '' },
    ];
    for (const status of runStatuses.filter(isEnded)) {
      for (const event of late) expect(nextRunState(stateOf(status), event)).toBeUndefined();
    }
    expect(nextRunState({ status: 'completed' }, { kind: 'requeued' })).toBeUndefined();
  });
});

describe('an engine', () => {
  it('is told apart when it crashes and when it stops', () => {
    const training: EngineState = { kind: 'training', pid: 7, step: 3 };
    expect(nextEngineState(training, { kind: 'exited', ok: false, reason: 'SIGKILL' })).toEqual({
      kind: 'crashed',
      reason: 'SIGKILL',
    });
    const stopping = nextEngineState(training, { kind: 'stopAsked' });
    expect(stopping).toEqual({ kind: 'stopping', pid: 7 });
    expect(nextEngineState(stopping, { kind: 'step', step: 4 })).toEqual(stopping);
    expect(nextEngineState(stopping, { kind: 'exited', ok: true, reason: '' })).toEqual({ kind: 'stopped' });
  });
});
