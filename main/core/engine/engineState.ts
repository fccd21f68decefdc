/** One engine process, from spawn to exit. */
export type EngineState =
  | { kind: 'stopped' }
  | { kind: 'starting'; pid: number }
  | { kind: 'ready'; pid: number }
  | { kind: 'training'; pid: number; step: number }
  | { kind: 'stopping'; pid: number }
  | { kind: 'crashed'; reason: string };

export type EngineSignal =
  | { kind: 'spawned'; pid: number }
  | { kind: 'hello' }
  | { kind: 'step'; step: number }
  | { kind: 'stopAsked' }
  | { kind: 'exited'; ok: boolean; reason: string };

/** The next state; a signal without meaning in a state leaves it as it is. */
export function nextEngineState(state: EngineState, signal: EngineSignal): EngineState {
  switch (signal.kind) {
    case 'spawned':
      return state.kind === 'stopped' || state.kind === 'crashed'
        ? { kind: 'starting', pid: signal.pid }
        : state;
    case 'hello':
      return state.kind === 'starting' ? { kind: 'ready', pid: state.pid } : state;
    case 'step':
      return state.kind === 'ready' || state.kind === 'training'
        ? { kind: 'training', pid: state.pid, step: signal.step }
        : state;
    case 'stopAsked':
      return 'pid' in state ? { kind: 'stopping', pid: state.pid } : state;
    case 'exited':
      if (!('pid' in state)) return state;
      return signal.ok ? { kind: 'stopped' } : { kind: 'crashed', reason: signal.reason };
  }
}
