import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { AppContext } from '../../../main/appContext.ts';
import type { RunSummary } from '../../../main/contract/runs.ts';
import { createTopic } from '../../../main/observable.ts';

// Electron's own notifications need a desktop; what is said, when, and what a click does is ours.
const electron = vi.hoisted(() => {
  class Notification {
    static shown: Notification[] = [];
    static isSupported = () => true;
    listeners = new Map<string, () => void>();
    text: { title: string; body: string };
    constructor(text: { title: string; body: string }) {
      this.text = text;
    }
    on(event: string, listener: () => void) {
      this.listeners.set(event, listener);
    }
    show() {
      Notification.shown.push(this);
    }
  }
  return { Notification, BrowserWindow: { getFocusedWindow: vi.fn((): unknown => null) } };
});
vi.mock('electron', () => electron);
const { describeEnd, setupNotifications } = await import('../../../main/notifications/setupNotifications.ts');

const run = (over: Partial<RunSummary>): RunSummary => ({
  ...({ id: 'r1', name: 'night shift', status: 'completed', steps: 1200, plannedSteps: 1200 } as RunSummary),
  ...over,
});

describe('what is said of a run that has ended', () => {
  it('names the run, its steps and what it learnt', () => {
    expect(describeEnd(run({ firstLoss: 2.51234, lastLoss: 1.2 }))).toEqual({
      title: 'night shift is trained',
      body: '1,200 of 1,200 steps. Loss 2.512 to 1.200.',
    });
  });
  it('gives the reason of a failure, and no loss where there is none', () => {
    expect(describeEnd(run({ status: 'failed', steps: 3, reason: 'the engine was killed' }))).toEqual({
      title: 'night shift failed',
      body: 'the engine was killed. 3 of 1,200 steps.',
    });
    expect(describeEnd(run({ status: 'stopped', steps: 40 })).title).toBe('night shift was stopped');
  });
});

describe('when it is said', () => {
  beforeEach(() => {
    electron.Notification.shown = [];
    electron.BrowserWindow.getFocusedWindow.mockReturnValue(null);
  });
  const context = () => {
    const endedRuns = createTopic<RunSummary>();
    const showWindow = vi.fn();
    setupNotifications({ endedRuns, showWindow } as unknown as AppContext);
    return { endedRuns, showWindow };
  };
  it('shows the run on a click', () => {
    const { endedRuns, showWindow } = context();
    endedRuns.emit(run({}));
    expect(electron.Notification.shown.map(({ text }) => text.title)).toEqual(['night shift is trained']);
    electron.Notification.shown[0]!.listeners.get('click')!();
    expect(showWindow).toHaveBeenCalledWith('/runs/r1');
  });
  it('keeps quiet while somebody looks at the window', () => {
    const { endedRuns } = context();
    electron.BrowserWindow.getFocusedWindow.mockReturnValue({});
    endedRuns.emit(run({}));
    expect(electron.Notification.shown).toEqual([]);
  });
});
