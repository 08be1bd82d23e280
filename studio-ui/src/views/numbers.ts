/** Numbers as people read them, and the ticks of axes. */

/** Four significant digits, without the zeros at the end; a dash for what is no number. */
export function readable(value: number | null | undefined, digits = 4): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return value.toLocaleString("en");
  if (size < 1e-4 || size >= 1e7) return tidyExponent(value.toExponential(Math.min(digits - 1, 2)));
  const text = value.toPrecision(digits);
  return text.includes("e") ? Number(text).toLocaleString("en") : withoutZeros(text);
}

/** A share as a percentage: 0.0312 is "3.1 %". */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return "–";
  const value = 100 * share;
  if (value !== 0 && Math.abs(value) < 0.1) return `${withoutZeros(value.toPrecision(1))} %`;
  return `${withoutZeros(value.toFixed(1))} %`;
}

function withoutZeros(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function tidyExponent(text: string): string {
  const [mantissa = "", exponent = "0"] = text.split("e");
  return `${withoutZeros(mantissa)}e${Number(exponent)}`;
}

/** Round numbers from low to high, about `count` of them. */
export function linearTicks(low: number, high: number, count = 5): number[] {
  if (!(high > low)) return Number.isFinite(low) ? [low] : [];
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((own) => own >= raw * 0.999) ?? raw;
  const ticks: number[] = [];
  const first = Math.ceil(low / step - 1e-9);
  for (let k = first; k * step <= high + step * 1e-9 && ticks.length < 50; k += 1) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  return ticks;
}

/** Whole numbers from low to high, about `count` of them. */
export function wholeTicks(low: number, high: number, count = 5): number[] {
  const ticks = linearTicks(low, high, count);
  return ticks.every(Number.isInteger)
    ? ticks
    : linearTicks(low, high, count / 2).filter(Number.isInteger);
}

/** Powers of ten from low to high, thinned to about `count`. */
export function logTicks(low: number, high: number, count = 5): number[] {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const stride = Math.max(1, Math.ceil((last - first + 1) / Math.max(1, count)));
  const ticks: number[] = [];
  for (let k = first; k <= last; k += stride) ticks.push(10 ** k);
  return ticks.length >= 2 ? ticks : [low, high];
}

/** From values to places on the screen. */
export interface Scale {
  place: (value: number) => number;
  value: (place: number) => number;
  ticks: number[];
}

export function linearScale(
  [low, high]: [number, number],
  [start, end]: [number, number],
  count = 5,
): Scale {
  const span = high - low || 1;
  return {
    place: (value) => start + ((value - low) / span) * (end - start),
    value: (place) => low + ((place - start) / (end - start || 1)) * span,
    ticks: linearTicks(low, high, count),
  };
}

export function logScale(
  [low, high]: [number, number],
  [start, end]: [number, number],
  count = 5,
): Scale {
  const inner = linearScale([Math.log10(low), Math.log10(high)], [start, end]);
  return {
    place: (value) => inner.place(Math.log10(value)),
    value: (place) => 10 ** inner.value(place),
    ticks: logTicks(low, high, count),
  };
}

/** The smallest and the largest finite value; (0, 1) without any. */
export function rangeOf(values: Iterable<number>, isUsed = Number.isFinite): [number, number] {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (!isUsed(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

/** A range with room on both sides, and never empty. */
export function roomy([low, high]: [number, number], room = 0.05): [number, number] {
  const span = high - low || Math.abs(high) || 1;
  return [low - room * span, high + room * span];
}
