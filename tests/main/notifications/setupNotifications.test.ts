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
const { setupNotifications } = await import('../../../main/notifications/setupNotifications.ts');

const run = (over: Partial<RunSummary>): RunSummary => ({
  ...({ id: 'r1', name: 'night shift', status: 'completed', steps: 1200, plannedSteps: 1200 } as RunSummary),
  ...over,
});

describe('when it is said', () => {
  beforeEach(() => {
    electron.Notification.shown = [];
    electron.BrowserWindow.getFocusedWindow.mockReturnValue(null);
  });
  const context = () => {
    const endedRuns = createTopic<RunSummary>();
    const showWindow = vi.fn();
    const core = { get: () => undefined };
    setupNotifications({ core, endedRuns, showWindow } as unknown as AppContext);
    return { endedRuns, showWindow };
  };
  it('shows the run on a click', async () => {
    const { endedRuns, showWindow } = context();
    endedRuns.emit(run({}));
    await vi.waitFor(() => {
      expect(electron.Notification.shown.map(({ text }) => text.title)).toEqual(['night shift is trained']);
    });
    electron.Notification.shown[0]!.listeners.get('click')!();
    expect(showWindow).toHaveBeenCalledWith('/runs/r1');
  });
  it('keeps quiet while somebody looks at the window', async () => {
    const { endedRuns } = context();
    electron.BrowserWindow.getFocusedWindow.mockReturnValue({});
    endedRuns.emit(run({}));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(electron.Notification.shown).toEqual([]);
  });
});
