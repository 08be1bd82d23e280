/** Signs of the classes: each has a colour and a shape, so that no one needs the colours. */

import type { Paint, Pen } from "./pen";

export const SHAPE_NAMES = ["circle", "square", "triangle", "diamond"] as const;

/** Radii that make the four shapes look equally large. */
const SIZES = [1, 0.9, 1.2, 1.22];

export function drawMark(
  pen: Pick<Pen, "circle" | "path">,
  own: number,
  x: number,
  y: number,
  radius: number,
  paint: Paint,
): void {
  const shape = own % SHAPE_NAMES.length;
  const r = radius * SIZES[shape]!;
  if (shape === 0) pen.circle(x, y, r, paint);
  else pen.path(corners(shape, x, y, r), paint, true);
}

function corners(shape: number, x: number, y: number, r: number): number[] {
  switch (shape) {
    case 1:
      return [x - r, y - r, x + r, y - r, x + r, y + r, x - r, y + r];
    case 2:
      return [x, y - r, x + r * 0.95, y + r * 0.7, x - r * 0.95, y + r * 0.7];
    default:
      return [x, y - r, x + r, y, x, y + r, x - r, y];
  }
}
