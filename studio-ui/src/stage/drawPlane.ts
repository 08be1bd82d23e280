/** Everything behind the points of a plane: surface, boundary, margins, members, hulls, lines. */

import type { Palette } from "../looks/colours";
import type { Plane, Step } from "../protocol";
import { blurred, cellSides, contour, indicator, padded, type ValueGrid } from "./contours";
import { type Frame, xPixel, yPixel } from "./frame";
import type { Layers } from "./layers";
import type { Paint, Pen } from "./pen";
import { drawRegionBoundary, drawRegionFills, drawRegionSides } from "./regions";
import { isFlat, surfaceImage } from "./surface";

/** Rounds of mixing that take the stairs off the line between two classes. */
const SMOOTHING = 12;

/** What is computed once for a plane and a theme, and drawn many times. */
export interface PreparedPlane {
  plane: Plane;
  image: HTMLCanvasElement;
  isFlat: boolean;
  /** In shares of the view, 0 to 1, both ways. */
  boundary: number[][];
  /** At -1 and at 1. */
  margins: [number[][], number[][]];
  members: number[][];
}

/** Whether a surface is made of flat pieces: always, never, or as its values look. */
export type Flatness = "flat" | "smooth" | "seen";

export function preparePlane(plane: Plane, palette: Palette, flatness: Flatness): PreparedPlane {
  const flat = flatness === "flat" || (flatness === "seen" && isFlat(plane));
  return {
    plane,
    image: surfaceImage(plane, palette),
    isFlat: flat,
    boundary: boundaryOf(plane, flat),
    margins: plane.hasMargins ? [surfaceLines(plane, -1), surfaceLines(plane, 1)] : [[], []],
    members: membersOf(plane, flat),
  };
}

function boundaryOf(plane: Plane, flat: boolean): number[][] {
  if (plane.classes.length < 2) return [];
  const [rows, columns] = plane.winner.shape;
  const winner = { values: plane.winner.values, rows, columns };
  if (flat) return inShares(cellSides(winner), rows, columns);
  if (plane.kind !== "confidence") return surfaceLines(plane, plane.kind === "score" ? 0 : 0.5);
  return winnerLines(winner, plane.classes);
}

function surfaceLines(plane: Plane, level: number): number[][] {
  const [rows, columns] = plane.surface.shape;
  const grid = padded({ values: plane.surface.values, rows, columns }, true);
  return inShares(contour(grid, level), rows, columns, 1);
}

function winnerLines(winner: ValueGrid, classes: number[]): number[][] {
  // Of two classes, one contour is enough; of more, each is drawn around its own.
  const drawn = classes.length === 2 ? classes.slice(1) : classes;
  const lines = drawn.flatMap((own) => {
    const share = blurred(indicator(winner, own), SMOOTHING);
    return contour(padded(share, false), 0.5);
  });
  return inShares(lines, winner.rows, winner.columns, 1);
}

function membersOf(plane: Plane, flat: boolean): number[][] {
  if (!plane.members) return [];
  const [count, rows, columns] = plane.members.shape;
  const size = rows * columns;
  const lines: number[][] = [];
  for (let member = 0; member < count; member++) {
    const values = plane.members.values.subarray(member * size, (member + 1) * size);
    const grid = { values, rows, columns };
    if (flat) lines.push(...inShares(cellSides(grid), rows, columns));
    else lines.push(...winnerLines(grid, plane.classes));
  }
  return lines;
}

/** Values sit in the middles of cells that fill the view; `pad` more of them lie around it. */
function inShares(lines: number[][], rows: number, columns: number, pad = 0): number[][] {
  return lines.map((line) =>
    line.map((value, index) => (value - pad + 0.5) / (index % 2 === 0 ? columns : rows)),
  );
}

export function drawPlane(
  pen: Pen,
  frame: Frame,
  prepared: PreparedPlane,
  layers: Layers,
  palette: Palette,
): void {
  const { plane } = prepared;
  const hasRegions = layers.regions && plane.regions.length > 0;
  if (layers.surface) {
    if (hasRegions) drawRegionFills(pen, frame, plane, palette);
    else drawSurface(pen, frame, prepared);
  }
  if (layers.members) {
    const opacity = Math.min(0.5, Math.max(0.12, 5 / Math.max(1, plane.members?.shape[0] ?? 1)));
    drawLines(pen, frame, prepared.members, { stroke: palette.ink, width: 0.8, opacity });
  }
  if (layers.hulls && plane.hulls) drawHulls(pen, frame, plane, palette);
  if (layers.margins) {
    drawLines(pen, frame, prepared.margins.flat(), {
      stroke: palette.ink,
      width: 1.4,
      dash: [6, 5],
    });
  }
  if (hasRegions) {
    drawRegionSides(pen, frame, plane, palette);
    drawRegionBoundary(pen, frame, plane, palette);
  } else {
    drawLines(pen, frame, prepared.boundary, { stroke: palette.ink, width: 2.4 });
  }
}

function drawSurface(pen: Pen, frame: Frame, prepared: PreparedPlane): void {
  const width = frame.right - frame.left;
  const height = frame.bottom - frame.top;
  pen.image(prepared.image, frame.left, frame.top, width, height, !prepared.isFlat);
}

function drawLines(pen: Pen, frame: Frame, lines: number[][], paint: Paint): void {
  const width = frame.right - frame.left;
  const height = frame.bottom - frame.top;
  for (const line of lines) {
    const places = line.map((share, index) =>
      index % 2 === 0 ? frame.left + share * width : frame.bottom - share * height,
    );
    pen.path(places, paint);
  }
}

function drawHulls(pen: Pen, frame: Frame, plane: Plane, palette: Palette): void {
  const hulls = plane.hulls;
  if (!hulls) return;
  hulls.corners.forEach((corners, index) => {
    const colour = palette.k[plane.classes[index] ?? index] ?? palette.ink;
    const places = corners.flatMap(([x, y]) => [xPixel(frame, x ?? 0), yPixel(frame, y ?? 0)]);
    pen.path(places, { fill: colour, opacity: 0.14 }, true);
    pen.path(places, { stroke: colour, width: 1.6, dash: [3, 3] }, true);
  });
  const [a, b] = hulls.nearest.map(([x, y]) => [xPixel(frame, x ?? 0), yPixel(frame, y ?? 0)]);
  if (!a || !b) return;
  pen.path([...a, ...b], { stroke: palette.critical, width: 2.4 });
  for (const [x, y] of [a, b]) {
    pen.circle(x ?? 0, y ?? 0, 4.5, { fill: palette.paper, stroke: palette.critical, width: 2.4 });
  }
}

const LINE_PAINT: Record<Step["lines"][number]["role"], { width: number; dash?: number[] }> = {
  before: { width: 1.6, dash: [4, 5] },
  after: { width: 2.8 },
  average: { width: 2.2, dash: [10, 4] },
};

/** Lines w.x + b = 0 with their arrow w from the origin. */
export function drawStepLines(
  pen: Pen,
  frame: Frame,
  lines: Step["lines"],
  palette: Palette,
): void {
  for (const line of lines) {
    const colour =
      line.role === "before"
        ? palette.faint
        : line.role === "average"
          ? palette.k[2]!
          : palette.ink;
    const ends = lineEnds(frame, line.weights, line.intercept);
    const paint: Paint = { stroke: colour, ...LINE_PAINT[line.role] };
    if (ends) pen.path(ends, paint);
    if (line.role !== "average") drawArrow(pen, frame, line.weights, colour, paint.width ?? 1);
  }
}

/** Where the line leaves a box somewhat larger than the view, in pixels; null for w = 0. */
export function lineEnds(
  frame: Frame,
  [first, second]: [number, number],
  intercept: number,
): number[] | null {
  if (first === 0 && second === 0) return null;
  const { view } = frame;
  // Along the axis on which the line is flatter in pixels, so that steep lines do not overflow.
  const flat =
    Math.abs(second) * (view.y[1] - view.y[0]) >= Math.abs(first) * (view.x[1] - view.x[0]);
  if (flat) {
    return view.x.flatMap((x) => [
      xPixel(frame, x),
      yPixel(frame, -(first * x + intercept) / second),
    ]);
  }
  return view.y.flatMap((y) => [
    xPixel(frame, -(second * y + intercept) / first),
    yPixel(frame, y),
  ]);
}

function drawArrow(
  pen: Pen,
  frame: Frame,
  [first, second]: [number, number],
  colour: string,
  width: number,
): void {
  const x0 = xPixel(frame, 0);
  const y0 = yPixel(frame, 0);
  const x1 = xPixel(frame, first);
  const y1 = yPixel(frame, second);
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (length < 4) return;
  const a = ((x1 - x0) / length) * 10;
  const b = ((y1 - y0) / length) * 10;
  pen.path([x0, y0, x1, y1], { stroke: colour, width });
  pen.path(
    [x1, y1, x1 - a - b / 2, y1 - b + a / 2, x1 - a + b / 2, y1 - b - a / 2],
    { fill: colour },
    true,
  );
}
