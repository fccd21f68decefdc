export interface RatePlan {
  lr: number;
  kind: 'constant' | 'linear' | 'cosine';
  warmupSteps: number;
  minLr: number;
}

/** What a run's recipe says of its rate; undefined where an old one does not say it. */
export function ratePlan(recipe: Record<string, unknown>): RatePlan | undefined {
  const { lr } = (recipe.optimizer ?? {}) as Partial<RatePlan>;
  const { kind, warmupSteps, minLr } = (recipe.schedule ?? {}) as Partial<RatePlan>;
  return lr === undefined || kind === undefined || warmupSteps === undefined || minLr === undefined
    ? undefined
    : { lr, kind, warmupSteps, minLr };
}

/** Learning rate of step `step` (the first is 1) of `total`, as the engine works it out (native/train/recipe.cpp). */
export function rateOfStep(plan: RatePlan, step: number, total: number): number {
  const { lr, kind, warmupSteps, minLr } = plan;
  if (step <= warmupSteps) return (lr * step) / warmupSteps;
  if (kind === 'constant') return lr;
  const progress = Math.min(1, (step - 1 - warmupSteps) / Math.max(1, total - warmupSteps));
  const share = kind === 'linear' ? 1 - progress : 0.5 * (1 + Math.cos(Math.PI * progress));
  return minLr + (lr - minLr) * share;
}

const mostPoints = 120;

/** The steps from `from` to `total` at which a planned line has its points: the corners of the schedule among them. */
export function plannedSteps({ warmupSteps }: RatePlan, from: number, total: number): number[] {
  if (from >= total) return [];
  const stride = Math.max(1, Math.ceil((total - from) / mostPoints));
  const steps = Array.from({ length: Math.ceil((total - from) / stride) }, (_, i) => from + i * stride);
  const corners = [warmupSteps, warmupSteps + 1, total];
  return [...new Set([...steps, ...corners.filter((step) => step >= from && step <= total)])].sort(
    (a, b) => a - b,
  );
}
