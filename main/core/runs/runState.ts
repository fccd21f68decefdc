import type { RunStatus } from '../../contract/runs.ts';

/** What a run is doing, and all that belongs to it there. */
export type RunState =
  | { status: 'queued' }
  | { status: 'running' }
  /** With a reason it waits for something: room on the disk. */
  | { status: 'paused'; reason?: string }
  | { status: 'completed' }
  | { status: 'stopped'; reason: string }
  | { status: 'failed'; reason: string };

export type RunEvent =
  | { kind: 'started' }
  | { kind: 'paused'; reason?: string }
  | { kind: 'resumed' }
  | { kind: 'completed' }
  | { kind: 'stopped'; reason: string }
  | { kind: 'failed'; reason: string }
  /** Asked to start again from its newest checkpoint. */
  | { kind: 'requeued' };

const allowed: Record<RunEvent['kind'], readonly RunStatus[]> = {
  started: ['queued'],
  paused: ['running'],
  resumed: ['paused'],
  completed: ['running', 'paused'],
  stopped: ['queued', 'running', 'paused'],
  failed: ['queued', 'running', 'paused'],
  requeued: ['stopped', 'failed'],
};

/** The next state, or undefined where the event has no meaning in this one (a late word of an engine, say). */
export function nextRunState(state: RunState, event: RunEvent): RunState | undefined {
  if (!allowed[event.kind].includes(state.status)) return undefined;
  switch (event.kind) {
    case 'started':
    case 'resumed':
      return { status: 'running' };
    case 'paused':
      return { status: 'paused', ...(event.reason !== undefined && { reason: event.reason }) };
    case 'completed':
      return { status: 'completed' };
    case 'stopped':
      return { status: 'stopped', reason: event.reason };
    case 'failed':
      return { status: 'failed', reason: event.reason };
    case 'requeued':
      return { status: 'queued' };
  }
}

export function isEnded(status: RunStatus): boolean {
  return status === 'completed' || status === 'stopped' || status === 'failed';
}
