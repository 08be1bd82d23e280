/** Scenes as JSON text: written for people to keep, read without trusting a byte of it. */

import type { Scene, Value, View } from "../protocol";

/** Says what is wrong with a scene file, for the user. */
export class SceneFileError extends Error {}

const MOST_POINTS = 20_000;
const MOST_CLASSES = 4;
const MOST_PARAMETERS = 100;
const LONGEST_NAME = 200;

export const LARGEST_FILE = 4_000_000;

export function writeScene(scene: Scene): string {
  return `${JSON.stringify(scene, null, 1)}\n`;
}

/** Reads a scene, or throws a `SceneFileError` that names the field. */
export function readScene(text: string): Scene {
  if (text.length > LARGEST_FILE) throw new SceneFileError("The file is too large for a scene.");
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new SceneFileError("The file is not JSON; a scene is what “Save scene” writes.");
  }
  return sceneFrom(parsed);
}

function sceneFrom(parsed: unknown): Scene {
  const raw = record(parsed, "the scene");
  if (raw.version !== 1) {
    throw new SceneFileError(`version must be 1, got ${told(raw.version)}.`);
  }
  const task = raw.task;
  if (task !== "classification" && task !== "regression") {
    throw new SceneFileError(`task must be "classification" or "regression", got ${told(task)}.`);
  }
  const isPlane = task === "classification";
  const classes = list(raw.classes, "classes").map((item) => name(item, "classes"));
  if (classes.length > MOST_CLASSES) {
    throw new SceneFileError(`classes must be at most ${MOST_CLASSES}, got ${classes.length}.`);
  }
  const x = points(raw.x, isPlane ? 2 : 1);
  const y = list(raw.y, "y").map((item) => number(item, "y"));
  if (y.length !== x.length) {
    throw new SceneFileError(`x has ${x.length} points and y has ${y.length}.`);
  }
  if (isPlane) {
    const most = Math.min(classes.length, MOST_CLASSES);
    const wrong = y.find((item) => !Number.isInteger(item) || item < 0 || item >= most);
    if (wrong !== undefined) {
      throw new SceneFileError(`y must be classes 0 to ${most - 1}, got ${wrong}.`);
    }
  }
  const features = list(raw.features, "features").map((item) => name(item, "features"));
  if (features.length !== 2) throw new SceneFileError("features must be two names.");
  return {
    version: 1,
    task,
    x,
    y,
    testShare: within(raw.testShare, "testShare", 0, 0.5),
    seed: integer(raw.seed, "seed"),
    view: viewFrom(raw.view),
    features: features as [string, string],
    target: name(raw.target, "target"),
    classes,
    learner: name(raw.learner, "learner"),
    parameters: parametersFrom(raw.parameters),
  };
}

function points(raw: unknown, width: number): number[][] {
  const rows = list(raw, "x");
  if (rows.length > MOST_POINTS) {
    throw new SceneFileError(`x must have at most ${MOST_POINTS} points, got ${rows.length}.`);
  }
  return rows.map((row) => {
    const values = list(row, "x").map((item) => number(item, "x"));
    if (values.length !== width) {
      throw new SceneFileError(`each point of x must have ${width} numbers, got ${values.length}.`);
    }
    return values;
  });
}

function viewFrom(raw: unknown): View {
  const view = record(raw, "view");
  return { x: range(view.x, "view.x"), y: range(view.y, "view.y") };
}

function range(raw: unknown, field: string): [number, number] {
  const [low, high, ...rest] = list(raw, field).map((item) => number(item, field));
  if (low === undefined || high === undefined || rest.length > 0 || !(low < high)) {
    throw new SceneFileError(`${field} must be two rising numbers.`);
  }
  return [low, high];
}

function parametersFrom(raw: unknown): Record<string, Value> {
  const entries = Object.entries(record(raw, "parameters"));
  if (entries.length > MOST_PARAMETERS)
    throw new SceneFileError("parameters has too many entries.");
  return Object.fromEntries(
    entries.map(([key, value]) => {
      const isNumber = typeof value === "number" && Number.isFinite(value);
      if (isNumber || typeof value === "boolean" || value === null) return [key, value];
      return [key, name(value, `parameters.${key.slice(0, 40)}`)];
    }),
  );
}

function record(raw: unknown, field: string): Record<string, unknown> {
  if (raw === null || typeof raw !== "object" || Array.isArray(raw)) {
    throw new SceneFileError(`${field} must be an object, got ${told(raw)}.`);
  }
  return raw as Record<string, unknown>;
}

function list(raw: unknown, field: string): unknown[] {
  if (!Array.isArray(raw)) throw new SceneFileError(`${field} must be a list, got ${told(raw)}.`);
  return raw;
}

function number(raw: unknown, field: string): number {
  if (typeof raw !== "number" || !Number.isFinite(raw)) {
    throw new SceneFileError(`${field} must hold finite numbers, got ${told(raw)}.`);
  }
  return raw;
}

function within(raw: unknown, field: string, low: number, high: number): number {
  const value = number(raw, field);
  if (value < low || value > high) {
    throw new SceneFileError(`${field} must be from ${low} to ${high}, got ${value}.`);
  }
  return value;
}

function integer(raw: unknown, field: string): number {
  const value = number(raw, field);
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new SceneFileError(`${field} must be a whole number from 0, got ${value}.`);
  }
  return value;
}

function name(raw: unknown, field: string): string {
  if (typeof raw !== "string" || raw.length > LONGEST_NAME) {
    throw new SceneFileError(`${field} must hold short text, got ${told(raw)}.`);
  }
  return raw;
}

function told(raw: unknown): string {
  if (raw === undefined) return "nothing";
  const text = JSON.stringify(raw) ?? String(raw);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}
