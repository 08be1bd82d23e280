/** The whole picture, by any pen: the page's two canvases, a PNG or an SVG. */

import type { Palette } from "../looks/colours";
import type { Scene, Step } from "../protocol";
import { drawAxes, drawPaper } from "./drawAxes";
import { drawCurve } from "./drawCurve";
import { drawPlane, drawStepLines, type PreparedPlane } from "./drawPlane";
import { drawPoints, type PointMarks } from "./drawPoints";
import type { Frame } from "./frame";
import type { Layers, StagePicture } from "./layers";
import type { Pen } from "./pen";

export interface Painting {
  scene: Scene;
  picture: StagePicture | null;
  prepared: PreparedPlane | null;
  lines: Step["lines"];
  layers: Layers;
  palette: Palette;
  isCompact: boolean;
  /** Of letters and marks: larger for projectors. */
  zoom: number;
}

/** Half the breadth of a mark: points on the edge of the view are not cut. */
const OVERHANG = 9;

export function paintBack(pen: Pen, frame: Frame, painting: Painting): void {
  const { scene, picture, prepared, layers, palette, isCompact, zoom } = painting;
  const { left, top, right, bottom } = frame;
  pen.within(left, top, right - left, bottom - top, () => {
    drawPaper(pen, frame, palette);
    if (prepared) drawPlane(pen, frame, prepared, layers, palette);
    if (picture?.curve) drawCurve(pen, frame, picture.curve, layers, palette);
    drawStepLines(pen, frame, painting.lines, palette);
  });
  drawAxes(pen, frame, scene, palette, isCompact, zoom);
}

export function paintFront(pen: Pen, frame: Frame, marks: PointMarks, palette: Palette): void {
  const { left, top, right, bottom } = frame;
  const width = right - left + 2 * OVERHANG;
  pen.within(left - OVERHANG, top - OVERHANG, width, bottom - top + 2 * OVERHANG, () => {
    drawPoints(pen, frame, marks, palette);
  });
}

/** Points get smaller as they get many, and in pictures that are small. */
export function pointRadius(
  count: number,
  width: number,
  isCompact: boolean,
  zoom: number,
): number {
  const room = Math.min(1, Math.max(0.7, width / 560));
  const base = count <= 60 ? 6.5 : count <= 250 ? 5.4 : count <= 1000 ? 4 : count <= 4000 ? 2.8 : 2;
  return base * (isCompact ? 0.8 : 1) * room * zoom;
}
