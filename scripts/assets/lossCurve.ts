type Point = readonly [step: number, loss: number];

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [720, 320, 48, 36, 16, 16];

/** A loss curve as a self-contained SVG: training as a line, held-out points as dots joined. Light and dark. */
export function lossCurveSvg(training: readonly Point[], heldOut: readonly Point[]): string {
  const all = [...training, ...heldOut];
  const lastStep = Math.max(1, ...all.map(([step]) => step));
  const top = Math.ceil(Math.max(1, ...all.map(([, loss]) => loss)));
  const x = (step: number) => LEFT + (step / lastStep) * (WIDTH - LEFT - RIGHT);
  const y = (loss: number) => TOP + (1 - loss / top) * (HEIGHT - TOP - BOTTOM);
  const path = (points: readonly Point[]) =>
    points
      .map(([step, loss], i) => `${i === 0 ? 'M' : 'L'}${x(step).toFixed(1)} ${y(loss).toFixed(1)}`)
      .join('');
  const ticks = Array.from({ length: top + 1 }, (_, loss) => loss).map(
    (loss) =>
      `<path class="grid" d="M${LEFT} ${y(loss)}H${WIDTH - RIGHT}"/><text x="${LEFT - 8}" y="${y(loss) + 4}" text-anchor="end">${loss}</text>`,
  );
  const dots = heldOut.map(
    ([step, loss]) => `<circle cx="${x(step).toFixed(1)}" cy="${y(loss).toFixed(1)}" r="3"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Loss by step">
<style>text{font:11px sans-serif;fill:#6b7280}.grid{stroke:#9ca3af;stroke-opacity:.3}path{fill:none}.training{stroke:#3b82f6}.held-out{stroke:#d97706;stroke-width:1.5}circle{fill:#d97706}</style>
${ticks.join('\n')}
<path class="training" d="${path(training)}"/>
<path class="held-out" d="${path(heldOut)}"/>
${dots.join('')}
<text x="${LEFT}" y="${HEIGHT - 10}">step 0</text><text x="${WIDTH - RIGHT}" y="${HEIGHT - 10}" text-anchor="end">step ${lastStep}</text>
<text x="${WIDTH / 2}" y="${HEIGHT - 10}" text-anchor="middle">loss in nats a token: training (line), held out (dots)</text>
</svg>
`;
}
