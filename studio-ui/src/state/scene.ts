/** The scene that all modes share, as signals, kept over reloads of the tab. */

import { computed, effect, signal } from "@preact/signals";
import type { Catalogue, Learner, Parameter, Scene, Task, Value } from "../protocol";
import { drawing } from "./drawing";
import { History } from "./history";
import { readScene } from "./sceneFile";

const STORED = "margrove-studio-scene";
const STORE_PAUSE = 400;

export const catalogue = signal<Catalogue | null>(null);

export const EMPTY_SCENE: Scene = {
  version: 1,
  task: "classification",
  x: [],
  y: [],
  testShare: 0,
  seed: 0,
  view: { x: [-3, 3], y: [-3, 3] },
  features: ["x1", "x2"],
  target: "class",
  classes: ["A", "B"],
  learner: "SVC",
  parameters: {},
};

const history = new History<Scene>(storedScene() ?? EMPTY_SCENE);

export const scene = signal<Scene>(history.value);
export const canUndo = signal(false);
export const canRedo = signal(false);
/** Whether the tab brought its scene along from before a reload. */
export const hadStoredScene = history.value !== EMPTY_SCENE;

// Parts of the scene, so that a panel is not drawn again while a point is dragged.
export const task = computed(() => scene.value.task);
export const parameters = computed(() => scene.value.parameters);
export const pointCount = computed(() => scene.value.x.length);
export const testShare = computed(() => scene.value.testShare);
export const learnerName = computed(() => scene.value.learner);
export const currentLearner = computed(() => learnerNamed(learnerName.value));

function publish(): void {
  scene.value = history.value;
  canUndo.value = history.canUndo;
  canRedo.value = history.canRedo;
}

/** Changes the shared scene; changes with the same key in a row are one step of undo. */
export function changeScene(
  change: Partial<Scene> | ((old: Scene) => Scene),
  key: string | null = null,
): void {
  const old = history.value;
  const next = typeof change === "function" ? change(old) : { ...old, ...change };
  history.change(next, key);
  publish();
}

/** The gesture is over: the next change is a step of its own. */
export function settle(): void {
  history.settle();
}

export function undo(): void {
  history.undo();
  publish();
}

export function redo(): void {
  history.redo();
  publish();
}

/** Another scene altogether: a file's, a lesson's, a table's. */
export function replaceScene(next: Scene): void {
  drawing.value = null;
  history.change(next);
  publish();
}

export function learnerNamed(name: string): Learner | null {
  return catalogue.value?.learners.find((learner) => learner.name === name) ?? null;
}

/** The learner to begin with, for a task. */
export function learnerFor(wanted: Task): Learner | null {
  const learners = catalogue.value?.learners.filter((learner) => learner.task === wanted) ?? [];
  const preferred = wanted === "classification" ? "SVC" : "SVR";
  return learners.find((learner) => learner.name === preferred) ?? learners[0] ?? null;
}

export function defaultsOf(learner: Learner): Record<string, Value> {
  return Object.fromEntries(learner.parameters.map((own) => [own.name, own.default]));
}

/** Its parameters that mean something, given the values of the others. */
export function visibleParameters(learner: Learner, values: Record<string, Value>): Parameter[] {
  const defaults = defaultsOf(learner);
  return learner.parameters.filter((own) => {
    if (!own.when) return true;
    const other = values[own.when.name] ?? defaults[own.when.name] ?? null;
    return own.when.values.includes(other);
  });
}

/** Values set so far are kept where the new learner has a parameter of that name and kind. */
export function chooseLearner(name: string): void {
  const learner = learnerNamed(name);
  if (!learner) return;
  const before = currentLearner.value;
  const kept = scene.value.parameters;
  const values = defaultsOf(learner);
  for (const own of learner.parameters) {
    const old = before?.parameters.find((other) => other.name === own.name);
    const value = kept[own.name];
    // What another learner calls alike, but begins with elsewhere, is another thing: the depth of
    // a tree of its own is not that of a stump.
    const isSame = old?.default === own.default && old?.kind === own.kind;
    if (isSame && value !== undefined && fits(own, value)) values[own.name] = value;
  }
  changeScene({ learner: name, parameters: values });
}

function fits(parameter: Parameter, value: Value): boolean {
  if (value === null) return parameter.none !== undefined;
  switch (parameter.kind) {
    case "flag":
      return typeof value === "boolean";
    case "choice":
      return parameter.choices?.some((choice) => choice.value === value) ?? false;
    default:
      return (
        typeof value === "number" &&
        value >= (parameter.low ?? -Infinity) &&
        value <= (parameter.high ?? Infinity)
      );
  }
}

export function setParameter(name: string, value: Value, key: string | null = null): void {
  changeScene((old) => ({ ...old, parameters: { ...old.parameters, [name]: value } }), key);
}

function storedScene(): Scene | null {
  try {
    const text = window.sessionStorage.getItem(STORED);
    return text === null ? null : readScene(text);
  } catch {
    return null;
  }
}

let storeTimer: ReturnType<typeof setTimeout> | undefined;

/** Keeps the scene in the tab, a moment after each change. */
export function keepScene(): void {
  const store = () => {
    try {
      window.sessionStorage.setItem(STORED, JSON.stringify(scene.peek()));
    } catch {
      // Too large for the tab's storage, or none: the scene lives in memory alone.
    }
  };
  effect(() => {
    if (scene.value === EMPTY_SCENE) return;
    clearTimeout(storeTimer);
    storeTimer = setTimeout(store, STORE_PAUSE);
  });
  window.addEventListener("pagehide", () => {
    if (scene.peek() !== EMPTY_SCENE) store();
  });
}
