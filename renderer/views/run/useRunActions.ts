import { Pause, Play, RotateCw, Save, Scan, Square } from 'lucide-vue-next';
import { computed, onScopeDispose, watch, type Component, type Ref } from 'vue';
import type { RunDetail } from '../../../main/contract/runs.ts';
import { useTrainAgain } from '../../composables/useTrainAgain.ts';
import { usePaletteStore } from '../../stores/paletteStore.ts';
import type { useRun } from './useRun.ts';

export interface RunAction {
  label: string;
  icon: Component;
  run: () => void;
}

/** What can be done with a run as it is now: as buttons, and in the command palette while the run is in sight. */
export function useRunActions({ run, command }: ReturnType<typeof useRun>, isInSight: Ref<boolean>) {
  const palette = usePaletteStore();
  const trainAgain = useTrainAgain();
  const send = (label: string, icon: Component, name: Parameters<typeof command>[0]): RunAction => ({
    label,
    icon,
    run: () => void command(name),
  });
  const actionsOf = ({ id, status, checkpointStep }: RunDetail): RunAction[] => {
    const again = { label: 'New run from this', icon: RotateCw, run: () => void trainAgain(id) };
    if (status === 'queued') return [send('Cancel', Square, 'stop')];
    if (status === 'completed') return [again];
    if (status === 'stopped' || status === 'failed')
      return [again, send(checkpointStep === undefined ? 'Start again' : 'Resume', Play, 'resume')];
    return [
      status === 'paused' ? send('Go on', Play, 'resume') : send('Pause', Pause, 'pause'),
      send('Checkpoint now', Save, 'checkpoint'),
      ...(status === 'running' ? [send('Profile next step', Scan, 'profile')] : []),
      send('Stop and save', Square, 'stop'),
    ];
  };
  const actions = computed(() => (run.value === undefined ? [] : actionsOf(run.value)));
  watch(
    () => (isInSight.value ? actions.value : []),
    (now) => {
      palette.provide(
        'this run',
        now.map(({ label, run: act }) => ({
          id: `this-run-${label}`,
          title: label,
          group: 'This run',
          run: act,
        })),
      );
    },
    { immediate: true },
  );
  onScopeDispose(() => {
    palette.provide('this run', []);
  });
  return actions;
}
