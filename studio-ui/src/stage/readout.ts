/** What is said of a point, or of a place: beside the pointer and to screen readers. */

import type { Scene } from "../protocol";
import { formatNumber } from "../state/numbers";
import { curveAt } from "./drawCurve";
import { numberOf, supportOf } from "./drawPoints";
import type { StagePicture } from "./layers";
import { SHAPE_NAMES } from "./marks";
import { cellOf, valueBetween } from "./surface";

const SUPPORT_WORDS = [
  "",
  "support vector on the margin",
  "support vector inside the margin",
  "support vector on the wrong side",
];

/** The lines about a point, the most telling first. */
export function pointLines(scene: Scene, picture: StagePicture | null, index: number): string[] {
  const own = scene.x[index] ?? [];
  const value = scene.y[index] ?? 0;
  const lines: string[] = [];
  if (scene.task === "classification") {
    const shape = SHAPE_NAMES[value % SHAPE_NAMES.length];
    lines.push(`${scene.target} ${scene.classes[value] ?? value} (${shape})`);
    lines.push(named(scene.features[0], own[0] ?? 0), named(scene.features[1], own[1] ?? 0));
  } else {
    lines.push(named(scene.features[0], own[0] ?? 0), named(scene.target, value));
  }
  if (numberOf(picture?.isTest, scene, index) === 1) lines.push("kept for testing");
  const support = SUPPORT_WORDS[supportOf(picture, scene, index)];
  if (support) lines.push(support);
  const { plane, curve } = picture ?? {};
  addNumber(lines, "α", numberOf(plane?.alpha ?? curve?.alpha, scene, index));
  addNumber(lines, "slack ξ", numberOf(plane?.slack, scene, index));
  addNumber(lines, "weight", numberOf(plane?.weight, scene, index));
  addNumber(lines, "residual", numberOf(curve?.residual, scene, index));
  return lines;
}

/** The lines about a place without a point; a stepped surface has nothing between its steps. */
export function placeLines(
  scene: Scene,
  picture: StagePicture | null,
  [a, b]: [number, number],
  isStepped: boolean,
): string[] {
  const { plane, curve } = picture ?? {};
  if (curve) return [named(scene.features[0], a), `prediction ${formatNumber(curveAt(curve, a))}`];
  if (!plane) return [];
  const [rows, columns] = plane.surface.shape;
  const [column, row] = cellOf(plane, scene.view, [a, b]);
  const nearest =
    Math.min(rows - 1, Math.max(0, Math.round(row))) * columns +
    Math.min(columns - 1, Math.max(0, Math.round(column)));
  const winner = plane.winner.values[nearest] ?? 0;
  const value = isStepped ? plane.surface.values[nearest] : valueBetween(plane, column, row);
  const name = scene.classes[winner] ?? String(winner);
  return [`predicts ${name}`, `${plane.kind} ${formatNumber(value ?? Number.NaN)}`];
}

function addNumber(lines: string[], name: string, value: number | undefined): void {
  if (value !== undefined && Number.isFinite(value)) lines.push(named(name, value));
}

function named(name: string, value: number): string {
  const short = name.length > 30 ? `${name.slice(0, 29)}…` : name;
  return `${short} ${formatNumber(value)}`;
}
