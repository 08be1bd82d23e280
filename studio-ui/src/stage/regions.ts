/** The regions of one tree, exact: rectangles of the view. */

import type { Palette } from "../looks/colours";
import type { Plane } from "../protocol";
import { type Frame, xPixel, yPixel } from "./frame";
import type { Pen } from "./pen";
import { cellOf, tint, verdict } from "./surface";

type Region = Plane["regions"][number];

export function drawRegionFills(pen: Pen, frame: Frame, plane: Plane, palette: Palette): void {
  for (const region of plane.regions) {
    const [own, clearness] = regionVerdict(plane, frame, region);
    const [red, green, blue] = tint(palette, own, clearness);
    const [x, y, width, height] = box(frame, region);
    // A hair wider than it is, or the paper shines through between two of them.
    pen.rectangle(x, y, width + 0.5, height + 0.5, { fill: `rgb(${red},${green},${blue})` });
  }
}

/** The surface at the middle, unless the region is too narrow for the grid to have met it. */
function regionVerdict(plane: Plane, frame: Frame, region: Region): [number, number] {
  const [rows, columns] = plane.surface.shape;
  const middle = ([low, high]: [number, number]) => (low + high) / 2;
  const place: [number, number] = [middle(region.x), middle(region.y)];
  const [column, row] = cellOf(plane, frame.view, place).map(Math.round) as [number, number];
  const at = Math.min(row, rows - 1) * columns + Math.min(column, columns - 1);
  if (plane.winner.values[at] !== region.class) return [region.class, 0.5];
  const [, clearness] = verdict(plane, plane.surface.values[at] ?? 0, region.class);
  return [region.class, clearness];
}

export function drawRegionSides(pen: Pen, frame: Frame, plane: Plane, palette: Palette): void {
  for (const region of plane.regions) {
    const [x, y, width, height] = box(frame, region);
    pen.rectangle(x, y, width, height, { stroke: palette.ink, width: 0.7, opacity: 0.45 });
  }
}

/** The sides that regions of different classes share. */
export function drawRegionBoundary(pen: Pen, frame: Frame, plane: Plane, palette: Palette): void {
  const paint = { stroke: palette.ink, width: 2.4 };
  for (const side of boundarySides(plane.regions)) {
    const [x1, y1, x2, y2] = side as [number, number, number, number];
    pen.path([xPixel(frame, x1), yPixel(frame, y1), xPixel(frame, x2), yPixel(frame, y2)], paint);
  }
}

export function boundarySides(regions: Region[]): number[][] {
  const sides: number[][] = [];
  for (const one of regions) {
    for (const other of regions) {
      if (one.class === other.class) continue;
      if (one.x[1] === other.x[0]) {
        const [low, high] = common(one.y, other.y);
        if (low < high) sides.push([one.x[1], low, one.x[1], high]);
      }
      if (one.y[1] === other.y[0]) {
        const [low, high] = common(one.x, other.x);
        if (low < high) sides.push([low, one.y[1], high, one.y[1]]);
      }
    }
  }
  return sides;
}

function common(one: [number, number], other: [number, number]): [number, number] {
  return [Math.max(one[0], other[0]), Math.min(one[1], other[1])];
}

function box(frame: Frame, region: Region): [number, number, number, number] {
  const left = xPixel(frame, region.x[0]);
  const top = yPixel(frame, region.y[1]);
  return [left, top, xPixel(frame, region.x[1]) - left, yPixel(frame, region.y[0]) - top];
}
