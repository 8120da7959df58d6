/** Scales of charts: where a value stands between two ends, and which values are named. */

export interface Tick {
  readonly value: number;
  readonly label: string;
}

/** Maps values to 0 … 1. */
export interface Scale {
  readonly label: string;
  readonly ticks: readonly Tick[];
  at(value: number): number;
}

/** Even steps from 0. */
export function linear(label: string, to: number, step: number): Scale {
  const ticks = Array.from(
    { length: Math.floor(to / step) + 1 },
    (_, i) => ({ value: i * step, label: `${i * step}` }),
  );
  return { label, ticks, at: (value) => value / to };
}

/** What the zero of a logarithmic scale takes of its length: zero itself stands at the very beginning. */
const ZERO_SHARE = 0.08;

/**
 * Even factors from `from` to `to`; with `hasZero` zero is shown too, before a gap.
 *
 * @param name of a tick.
 */
export function logarithmic(
  label: string,
  { from, to, hasZero, base = 10, name }: {
    readonly from: number;
    readonly to: number;
    readonly hasZero: boolean;
    readonly base?: number;
    readonly name: (value: number) => string;
  },
): Scale {
  const begins = hasZero ? ZERO_SHARE : 0;
  const steps = Math.round(Math.log(to / from) / Math.log(base));
  const ticks = Array.from({ length: steps + 1 }, (_, i) => from * base ** i).map((value) => ({
    value,
    label: name(value),
  }));
  const inside = (value: number) => Math.log(value / from) / Math.log(to / from);
  return {
    label,
    ticks: hasZero ? [{ value: 0, label: "0" }, ...ticks] : ticks,
    at: (value) => hasZero && value <= 0 ? 0 : begins + (1 - begins) * inside(value),
  };
}

const UNITS = ["B", "KB", "MB", "GB"] as const;

/** Bytes with a unit of a thousand, as in the paper. */
export function bytesName(bytes: number): string {
  let value = bytes, unit = 0;
  while (value >= 1_000 && unit < UNITS.length - 1) {
    value /= 1_000;
    unit++;
  }
  return `${Number(value.toPrecision(3))} ${UNITS[unit] ?? ""}`;
}

/** Milliseconds with as many digits as mean something. */
export const msName = (ms: number): string => `${Number(ms.toPrecision(3)).toLocaleString("en-US")} ms`;
