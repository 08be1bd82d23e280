/** Numbers as people read them, and as they type them. */

const ROUNDING = 1e-12;

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

/** What was typed, as a number; NaN for what is none. Takes what `formatNumber` writes. */
export function readNumber(text: string): number {
  const plain = text.replaceAll("−", "-").replace(",", ".").trim();
  return plain === "" ? Number.NaN : Number(plain);
}

/** A typed share: "30", "30%", "30 %" and "0.3" are the same. */
export function readShare(text: string): number {
  const value = readNumber(text.replace("%", ""));
  return text.includes("%") || value >= 1 ? value / 100 : value;
}

/** An error of a fit: what rounding left over is none. */
export function formatError(value: number): string {
  return formatNumber(Math.abs(value) < ROUNDING ? 0 : value);
}

/** "1 row", "2 rows", "1,000 rows". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
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
