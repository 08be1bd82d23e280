/** Places on a slider, 0 to 1, and the values they stand for. */

export interface SliderScale {
  low: number;
  high: number;
  scale: "linear" | "log";
  isInteger: boolean;
}

/** Values get three significant digits: what the slider says is what the learner gets. */
const DIGITS = 3;

export function valueAt(place: number, own: SliderScale): number {
  const inside = Math.min(1, Math.max(0, place));
  const value = isLog(own)
    ? own.low * (own.high / own.low) ** inside
    : own.low + (own.high - own.low) * inside;
  return rounded(value, own);
}

export function placeOf(value: number, own: SliderScale): number {
  if (own.high <= own.low) return 0;
  const place = isLog(own)
    ? Math.log(Math.max(value, own.low) / own.low) / Math.log(own.high / own.low)
    : (value - own.low) / (own.high - own.low);
  return Math.min(1, Math.max(0, place));
}

/** The next value in a direction: one for integers, a twentieth of a power of ten or of the range. */
export function stepped(value: number, direction: 1 | -1, own: SliderScale): number {
  const stride = isLog(own) ? 1 / (20 * Math.log10(own.high / own.low)) : 1 / 100;
  const next = valueAt(placeOf(value, own) + direction * stride, own);
  if (!own.isInteger || next !== Math.round(value)) return next;
  return Math.min(own.high, Math.max(own.low, Math.round(value) + direction));
}

function isLog(own: SliderScale): boolean {
  return own.scale === "log" && own.low > 0;
}

function rounded(value: number, own: SliderScale): number {
  if (own.isInteger) return Math.min(own.high, Math.max(own.low, Math.round(value)));
  if (value === own.low || value === own.high) return value;
  if (isLog(own)) return clamped(Number(value.toPrecision(DIGITS)), own);
  // On linear scales the digits follow the range, so that 0 is met exactly.
  const unit = 10 ** Math.floor(Math.log10((own.high - own.low) / 500));
  return clamped(Number((Math.round(value / unit) * unit).toPrecision(12)), own);
}

function clamped(value: number, own: SliderScale): number {
  return Math.min(own.high, Math.max(own.low, value));
}
