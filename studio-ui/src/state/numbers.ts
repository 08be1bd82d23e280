/** Numbers as people read them. */

/** About this many significant digits, without trailing zeros or a needless exponent. */
export function formatNumber(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "–" : value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return minus(trimmed(value.toExponential(digits - 1)));
  if (Number.isInteger(value)) return minus(String(value));
  return minus(String(Number(value.toPrecision(digits))));
}

export function formatShare(value: number): string {
  const percent = value * 100;
  const digits = percent === 0 || percent >= 99.95 || percent >= 10 ? 1 : 2;
  return `${Number(percent.toFixed(digits))} %`;
}

export function formatSeconds(seconds: number): string {
  if (seconds < 1e-3) return `${Math.max(1, Math.round(seconds * 1e6))} µs`;
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(2))} ms`;
  return `${Number(seconds.toPrecision(3))} s`;
}

function trimmed(text: string): string {
  return text.replace(/\.?0+e/, "e").replace("e+", "e");
}

function minus(text: string): string {
  return text.replace(/-/g, "−");
}

/** Round numbers inside a range, about `count` of them. */
export function ticks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((own) => own >= rough * 0.999);
  if (!step || !Number.isFinite(step)) return [];
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const found: number[] = [];
  for (let index = first; index <= last; index++) {
    found.push(Number((index * step).toPrecision(12)));
  }
  return found;
}
