/** The points with their rings, slack lines, weights and marks: redrawn at each frame of a drag. */

import type { Palette } from "../looks/colours";
import type { Scene } from "../protocol";
import { curveAt } from "./drawCurve";
import { type Frame, pointPlace, xPixel, yPixel } from "./frame";
import type { Layers, StagePicture } from "./layers";
import { drawMark } from "./marks";
import type { Paint, Pen } from "./pen";

export interface PointMarks {
  scene: Scene;
  picture: StagePicture | null;
  layers: Layers;
  highlighted: number[];
  /** Has the keyboard; -1 for none. */
  focused: number;
  hovered: number;
  radius: number;
  /** Lines of the two margins in shares of the view, for the feet of slacks. */
  margins: [number[][], number[][]];
}

const SMALLEST_SLACK = 1e-6;

/** From here on, points are stamped instead of drawn. */
const MANY = 600;

/** Radii of stamps a pixel: weights differ from point to point, and each radius is a stamp. */
const STAMPED_SIZES = 2;

/** On the margin, inside it, on the wrong side. */
export const SUPPORT_PAINT: Record<number, Paint> = {
  1: { width: 2 },
  2: { width: 1.8, dash: [3, 3] },
  3: { width: 2.6 },
};

/** Numbers of a picture that belong to a point; a picture of fewer points knows nothing of the new. */
export function numberOf(
  values: ArrayLike<number> | null | undefined,
  scene: Scene,
  index: number,
) {
  if (!values || values.length > scene.x.length) return undefined;
  return values[index];
}

/** More of them would hide what they mark. */
const MOST_STRONG_RINGS = 12;

export function drawPoints(pen: Pen, frame: Frame, marks: PointMarks, palette: Palette): void {
  if (marks.layers.slack) drawSlack(pen, frame, marks, palette);
  for (let index = 0; index < marks.scene.x.length; index++) {
    drawPoint(pen, frame, marks, palette, index);
  }
  for (const index of marks.highlighted) drawHighlight(pen, frame, marks, palette, index);
  if (marks.focused >= 0) drawFocus(pen, frame, marks, palette);
}

function drawPoint(
  pen: Pen,
  frame: Frame,
  marks: PointMarks,
  palette: Palette,
  index: number,
): void {
  const { scene, picture, layers } = marks;
  const [x, y] = pixelOf(frame, scene, index);
  const isPlane = scene.task === "classification";
  const own = isPlane ? (scene.y[index] ?? 0) : 0;
  const colour = palette.k[own % palette.k.length]!;
  const isStamped = scene.x.length >= MANY;
  const exact = radiusOf(marks, index);
  const radius = isStamped ? Math.round(exact * STAMPED_SIZES) / STAMPED_SIZES : exact;
  const support = layers.support ? supportOf(picture, scene, index) : 0;
  // Outside the tube of a regression is where most support vectors are: nothing is wrong there.
  const ring = support === 3 && !isPlane ? 2 : support;
  if (ring > 0) drawRing(pen, x, y, radius + 4, ring, palette);
  const isTest = numberOf(picture?.isTest, scene, index) === 1;
  const draw = (by: Pen, a: number, b: number) => {
    if (isTest) {
      drawMark(by, own, a, b, radius * 0.85, { stroke: palette.paper, width: 4 });
      drawMark(by, own, a, b, radius * 0.85, { fill: palette.paper, stroke: colour, width: 2.2 });
    } else {
      drawMark(by, own, a, b, radius, { fill: colour, stroke: palette.paper, width: 1.3 });
    }
  };
  if (!isStamped) draw(pen, x, y);
  else
    pen.stamp(
      `${own} ${isTest} ${radius} ${colour} ${palette.paper}`,
      x,
      y,
      radius * 1.3 + 3,
      draw,
    );
  if (index === marks.hovered) {
    drawMark(pen, own, x, y, radius + 2.5, { stroke: palette.ink, width: 1.5 });
  }
}

function drawRing(
  pen: Pen,
  x: number,
  y: number,
  radius: number,
  support: number,
  palette: Palette,
): void {
  const stroke = support === 3 ? palette.critical : palette.ink;
  pen.circle(x, y, radius, { stroke, ...SUPPORT_PAINT[support] });
}

function drawHighlight(
  pen: Pen,
  frame: Frame,
  marks: PointMarks,
  palette: Palette,
  index: number,
): void {
  if (index >= marks.scene.x.length) return;
  const [x, y] = pixelOf(frame, marks.scene, index);
  const isOneOfMany = marks.highlighted.length > MOST_STRONG_RINGS;
  const radius = radiusOf(marks, index) + (isOneOfMany ? 3 : 8);
  if (!isOneOfMany) pen.circle(x, y, radius, { stroke: palette.paper, width: 6 });
  pen.circle(x, y, radius, { stroke: palette.accent, width: isOneOfMany ? 1.4 : 3.2 });
}

function drawFocus(pen: Pen, frame: Frame, marks: PointMarks, palette: Palette): void {
  if (marks.focused >= marks.scene.x.length) return;
  const [x, y] = pixelOf(frame, marks.scene, marks.focused);
  const half = radiusOf(marks, marks.focused) + 7;
  const box: [number, number, number, number] = [x - half, y - half, 2 * half, 2 * half];
  pen.rectangle(...box, { stroke: palette.paper, width: 5 });
  pen.rectangle(...box, { stroke: palette.accent, width: 2.6 });
}

export function supportOf(picture: StagePicture | null, scene: Scene, index: number): number {
  const kinds = picture?.plane?.supportKind ?? picture?.curve?.supportKind;
  return numberOf(kinds, scene, index) ?? 0;
}

function radiusOf(marks: PointMarks, index: number): number {
  if (!marks.layers.weights) return marks.radius;
  const weight = numberOf(marks.picture?.plane?.weight, marks.scene, index);
  if (weight === undefined || !Number.isFinite(weight)) return marks.radius;
  // Area follows weight, within what can still be seen and told apart.
  return marks.radius * Math.min(3.2, Math.max(0.45, Math.sqrt(weight)));
}

function pixelOf(frame: Frame, scene: Scene, index: number): [number, number] {
  const [a, b] = pointPlace(scene, index);
  return [xPixel(frame, a), yPixel(frame, b)];
}

function drawSlack(pen: Pen, frame: Frame, marks: PointMarks, palette: Palette): void {
  const { scene, picture } = marks;
  const { plane, curve } = picture ?? {};
  for (let index = 0; index < scene.x.length; index++) {
    const [x, y] = pixelOf(frame, scene, index);
    const own = palette.k[scene.task === "classification" ? (scene.y[index] ?? 0) : 0];
    if (curve) {
      const foot = yPixel(frame, curveAt(curve, scene.x[index]?.[0] ?? 0));
      if (Number.isFinite(foot)) {
        pen.path([x, y, x, foot], { stroke: own, width: 1.1, opacity: 0.55 });
      }
    } else if (plane?.hasMargins && (numberOf(plane.slack, scene, index) ?? 0) > SMALLEST_SLACK) {
      const side = scene.y[index] === plane.classes[1] ? 1 : 0;
      const foot = nearestOn(frame, marks.margins[side], x, y);
      if (foot) pen.path([x, y, ...foot], { stroke: own, width: 1.4, dash: [2, 3] });
    }
  }
}

/** The nearest corner of some lines, which are in shares of the view; null if there are none. */
function nearestOn(frame: Frame, lines: number[][], x: number, y: number): [number, number] | null {
  const width = frame.right - frame.left;
  const height = frame.bottom - frame.top;
  let found: [number, number] | null = null;
  let nearest = Infinity;
  for (const line of lines) {
    for (let index = 0; index + 1 < line.length; index += 2) {
      const a = frame.left + line[index]! * width;
      const b = frame.bottom - line[index + 1]! * height;
      const distance = (a - x) ** 2 + (b - y) ** 2;
      if (distance < nearest) {
        nearest = distance;
        found = [a, b];
      }
    }
  }
  return found;
}
