const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** An axis of amounts of bytes: ends and steps are round in the unit that they are written in. */
export interface BinaryAxis {
  min: number;
  max: number;
  interval: number;
  /** With as many decimals as tell the steps apart. */
  write: (value: number) => string;
}

/** About how many steps an axis shall have. */
const numParts = 3;

export function binaryAxis(lowest: number, highest: number): BinaryAxis {
  const power = Math.min(
    units.length - 1,
    Math.max(0, Math.floor(Math.log(Math.max(1, Math.abs(highest))) / Math.log(1024))),
  );
  const unit = 1024 ** power;
  const least = highest > lowest ? (highest - lowest) / numParts : Math.max(unit, Math.abs(highest)) / 10;
  const decade = 10 ** Math.floor(Math.log10(least / unit));
  const step = ([1, 2, 5, 10].find((each) => each * decade * unit >= least * 0.999) ?? 10) * decade;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const interval = step * unit;
  const min = Math.floor(lowest / interval) * interval;
  return {
    min,
    max: Math.max(min + interval, Math.ceil(highest / interval) * interval),
    interval,
    write: (value) => `${(value / unit).toFixed(digits)} ${units[power] ?? ''}`,
  };
}
