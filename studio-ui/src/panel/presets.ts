/** The points one starts from: a preset with its size and noise, drawn by the library. */

import { signal } from "@preact/signals";
import { Follower } from "../connection/useAnswer";
import type { Points, Preset } from "../protocol";
import { type Drawing, drawing } from "../state/drawing";
import { catalogue, changeScene, defaultsOf, learnerFor, scene } from "../state/scene";

export const drawingError = signal<Error | null>(null);

const FIRST = "moons";

let taken: Points | null = null;
let follower: Follower<"points"> | null = null;

/** Draws points anew; a slider may ask many times a second. */
export function drawPreset(next: Drawing): void {
  drawing.value = next;
  follower ??= new Follower<"points">("points", (answer) => {
    drawingError.value = answer.error;
    if (answer.value && answer.value !== taken) {
      taken = answer.value;
      takePoints(answer.value);
    }
  });
  follower.want({ kind: "points", ...next });
}

export function choosePreset(preset: Preset): void {
  const { name, size, noise } = preset;
  drawPreset({ preset: name, size, noise, seed: drawing.peek()?.seed ?? 0 });
}

/** The preset of a page that brought no scene along. */
export function drawFirst(): void {
  const presets = catalogue.peek()?.presets ?? [];
  const first =
    presets.find((preset) => preset.name === FIRST) ??
    presets.find((preset) => preset.task === "classification");
  if (first) choosePreset(first);
}

/** Points of another task need another learner. */
export function takePoints(points: Points): void {
  const old = scene.peek();
  const fields = {
    task: points.task,
    x: points.x,
    y: points.y,
    view: points.view,
    features: points.features,
    target: points.target,
    classes: points.classes,
  };
  const isNewTask = points.task !== old.task;
  const learner = isNewTask ? learnerFor(points.task) : null;
  const chosen = learner ? { learner: learner.name, parameters: defaultsOf(learner) } : {};
  changeScene({ ...fields, ...chosen }, isNewTask ? null : "preset");
}
