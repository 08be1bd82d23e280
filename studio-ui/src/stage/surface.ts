/** The colours behind the points: who wins where, and how clearly. */

import type { Colour, Palette } from "../looks/colours";
import type { Plane, View } from "../protocol";

/** The largest share of a class's colour in the mix with the paper. */
const STRONGEST = 0.5;
const WEAKEST = 0.06;

/** A class's index and how clearly it wins, 0 to 1, from a value of the surface. */
export function verdict(plane: Plane, value: number, winner: number): [number, number] {
  if (plane.kind === "confidence") {
    const span = plane.high - plane.low || 1;
    return [winner, clamp((value - plane.low) / span)];
  }
  const middle = plane.kind === "probability" ? 0.5 : 0;
  const reach = Math.max(plane.high - middle, middle - plane.low) || 1;
  const own = plane.classes[value >= middle ? 1 : 0] ?? winner;
  return [own, clamp(Math.abs(value - middle) / reach)];
}

export function tint(palette: Palette, own: number, clearness: number): Colour {
  const share = WEAKEST + (STRONGEST - WEAKEST) * Math.sqrt(clearness);
  const colour = palette.rgb[own % palette.rgb.length]!;
  return palette.paperRgb.map((paper, index) =>
    Math.round(paper + (colour[index]! - paper) * share),
  ) as Colour;
}

/** The surface as a small image, a pixel for each value of the grid, upright. */
export function surfaceImage(plane: Plane, palette: Palette): HTMLCanvasElement {
  const [rows, columns] = plane.surface.shape;
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  const image = context.createImageData(columns, rows);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const at = row * columns + column;
      const value = plane.surface.values[at]!;
      const [own, clearness] = verdict(plane, value, plane.winner.values[at] ?? 0);
      const [red, green, blue] = tint(palette, own, Number.isNaN(value) ? 0 : clearness);
      const pixel = ((rows - 1 - row) * columns + column) * 4;
      image.data[pixel] = red;
      image.data[pixel + 1] = green;
      image.data[pixel + 2] = blue;
      image.data[pixel + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Column and row of a place of the view, in cells: the middle of the first one is 0. */
export function cellOf(plane: Plane, view: View, [a, b]: [number, number]): [number, number] {
  const [rows, columns] = plane.surface.shape;
  return [
    ((a - view.x[0]) / (view.x[1] - view.x[0])) * columns - 0.5,
    ((b - view.y[0]) / (view.y[1] - view.y[0])) * rows - 0.5,
  ];
}

/** The surface between the middles of its cells; NaN outside the view. */
export function valueBetween(plane: Plane, column: number, row: number): number {
  const [rows, columns] = plane.surface.shape;
  const isInside = column >= -0.5 && row >= -0.5 && column <= columns - 0.5 && row <= rows - 0.5;
  if (!isInside || rows < 2 || columns < 2) return Number.NaN;
  const left = Math.min(Math.max(Math.floor(column), 0), columns - 2);
  const below = Math.min(Math.max(Math.floor(row), 0), rows - 2);
  const a = column - left;
  const b = row - below;
  const at = below * columns + left;
  const { values } = plane.surface;
  const low = values[at]! * (1 - a) + values[at + 1]! * a;
  const high = values[at + columns]! * (1 - a) + values[at + columns + 1]! * a;
  return low * (1 - b) + high * b;
}

/** Whether the surface is made of flat pieces, as those of trees are. */
export function isFlat(plane: Plane): boolean {
  const [rows, columns] = plane.surface.shape;
  const { values } = plane.surface;
  let equal = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns - 1; column++) {
      const at = row * columns + column;
      if (values[at] === values[at + 1]) equal += 1;
    }
  }
  return equal > 0.5 * rows * (columns - 1);
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}
