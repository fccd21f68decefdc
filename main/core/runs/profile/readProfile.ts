import { storedProfile, type RunProfile } from '../../../contract/profile.ts';
import type { RunDetail } from '../../../contract/runs.ts';
import type { Account } from '../account.ts';
import { judgeProfile } from './verdict.ts';

/** A stored profile with its timeline spelt out and what to make of it. */
export function readProfile(data: string, run: RunDetail, account: Account | undefined): RunProfile {
  const stored = storedProfile.parse(JSON.parse(data));
  const { names = [], phases = [], spans = [] } = stored.timeline ?? {};
  const timeline = spans.map(([name, phase, layer, startMs, ms]) => ({
    operation: names[name] ?? '',
    phase: phases[phase] ?? '',
    layer,
    startMs,
    ms,
  }));
  return { ...stored, timeline, ...judgeProfile(stored, run, account) };
}
