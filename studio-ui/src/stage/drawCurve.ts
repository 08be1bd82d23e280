/** What lies behind the points of a regression: the band, the members and the curve. */

import type { Palette } from "../looks/colours";
import type { Curve } from "../protocol";
import { type Frame, xPixel, yPixel } from "./frame";
import type { Layers } from "./layers";
import type { Pen } from "./pen";

export function drawCurve(
  pen: Pen,
  frame: Frame,
  curve: Curve,
  layers: Layers,
  palette: Palette,
): void {
  if (layers.margins && curve.low && curve.high) drawBand(pen, frame, curve, palette);
  if (layers.members && curve.members) {
    const [count, length] = curve.members.shape;
    const opacity = Math.min(0.5, Math.max(0.12, 5 / Math.max(1, count)));
    for (let member = 0; member < count; member++) {
      const values = curve.members.values.subarray(member * length, (member + 1) * length);
      pen.path(line(frame, curve.x, values), { stroke: palette.ink, width: 0.8, opacity });
    }
  }
  pen.path(line(frame, curve.x, curve.y), { stroke: palette.k[5], width: 3 });
}

function drawBand(pen: Pen, frame: Frame, curve: Curve, palette: Palette): void {
  if (!curve.low || !curve.high) return;
  const low = line(frame, curve.x, curve.low);
  const high = line(frame, curve.x, curve.high);
  const back: number[] = [];
  for (let index = high.length - 2; index >= 0; index -= 2) {
    back.push(high[index]!, high[index + 1]!);
  }
  pen.path([...low, ...back], { fill: palette.k[5], opacity: 0.16 }, true);
  for (const side of [low, high]) {
    pen.path(side, { stroke: palette.k[5], width: 1.3, dash: [6, 5] });
  }
}

function line(frame: Frame, x: Float32Array, y: Float32Array): number[] {
  const places: number[] = [];
  for (let index = 0; index < x.length; index++) {
    const value = y[index]!;
    if (Number.isFinite(value)) places.push(xPixel(frame, x[index]!), yPixel(frame, value));
  }
  return places;
}

/** The curve at a place, between its values. */
export function curveAt(curve: Curve, x: number): number {
  const count = curve.x.length;
  if (count === 0) return Number.NaN;
  let low = 0;
  let high = count - 1;
  if (x <= curve.x[0]!) return curve.y[0]!;
  if (x >= curve.x[high]!) return curve.y[high]!;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (curve.x[middle]! <= x) low = middle;
    else high = middle;
  }
  const span = curve.x[high]! - curve.x[low]!;
  const share = span > 0 ? (x - curve.x[low]!) / span : 0;
  return curve.y[low]! * (1 - share) + curve.y[high]! * share;
}
