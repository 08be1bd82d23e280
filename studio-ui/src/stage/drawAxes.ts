import type { Palette } from "../looks/colours";
import type { Scene } from "../protocol";
import { formatNumber, ticks } from "../state/numbers";
import { type Frame, xPixel, yPixel } from "./frame";
import type { Pen } from "./pen";

const PIXELS_PER_TICK = 90;

/** Paper and grid lines behind everything. */
export function drawPaper(pen: Pen, frame: Frame, palette: Palette): void {
  const { left, top, right, bottom } = frame;
  pen.rectangle(left, top, right - left, bottom - top, { fill: palette.plate });
  const [xs, ys] = tickPlaces(frame);
  for (const x of xs) {
    const at = xPixel(frame, x);
    pen.path([at, top, at, bottom], { stroke: palette.grid, width: 1 });
  }
  for (const y of ys) {
    const at = yPixel(frame, y);
    pen.path([left, at, right, at], { stroke: palette.grid, width: 1 });
  }
}

/** The frame with its numbers and names, over everything. */
export function drawAxes(
  pen: Pen,
  frame: Frame,
  scene: Scene,
  palette: Palette,
  isCompact: boolean,
  zoom: number,
): void {
  const { left, top, right, bottom } = frame;
  pen.rectangle(left, top, right - left, bottom - top, { stroke: palette.faint, width: 1 });
  const [xs, ys] = tickPlaces(frame);
  const size = (isCompact ? 10 : 12) * zoom;
  const lettering = { colour: palette.faint, size };
  for (const x of xs) {
    const at = xPixel(frame, x);
    pen.path([at, bottom, at, bottom + 4], { stroke: palette.faint, width: 1 });
    pen.text(formatNumber(x), at, bottom + size + 5, { ...lettering, align: "center" });
  }
  for (const y of ys) {
    const at = yPixel(frame, y);
    pen.path([left - 4, at, left, at], { stroke: palette.faint, width: 1 });
    pen.text(formatNumber(y), left - 7, at + size * 0.35, { ...lettering, align: "right" });
  }
  if (isCompact) return;
  const name = { colour: palette.soft, size: 13 * zoom, align: "center" as const };
  const second = scene.task === "regression" ? scene.target : scene.features[1];
  pen.text(shortened(scene.features[0]), (left + right) / 2, frame.height - 5, name);
  pen.text(shortened(second), 13 * zoom, (top + bottom) / 2, { ...name, turn: -90 });
}

function tickPlaces(frame: Frame): [number[], number[]] {
  const { view } = frame;
  const across = Math.max(3, Math.round((frame.right - frame.left) / PIXELS_PER_TICK));
  const up = Math.max(3, Math.round((frame.bottom - frame.top) / PIXELS_PER_TICK));
  return [ticks(view.x[0], view.x[1], across), ticks(view.y[0], view.y[1], up)];
}

function shortened(text: string): string {
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}
