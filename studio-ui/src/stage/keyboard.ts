/** Points by keyboard: enter them with Enter or an arrow, walk with Tab, move with the arrows. */

import type { Scene } from "../protocol";
import { addPoint, erasePoint, MOST_CLASSES, movePoint, setClass } from "./edits";
import { pointPlace } from "./frame";

export interface KeyState {
  scene: Scene;
  /** -1: the stage itself has the focus, none of its points. */
  focused: number;
  isEditable: boolean;
  drawnClass: number;
}

export interface KeyResult {
  focused?: number;
  scene?: Scene;
  /** Changes with the same key are one step of undo. */
  key?: string;
  drawnClass?: number;
}

const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
};

const STRIDE = 0.01;

/** What a key does; null: nothing, the browser may have it. */
export function pressKey(
  state: KeyState,
  key: string,
  shift: boolean,
  alt = false,
): KeyResult | null {
  const { scene, focused } = state;
  const count = scene.x.length;
  if (key === "Escape") return focused >= 0 ? { focused: -1 } : null;
  if (key === "Tab") return walk(focused, count, shift);
  if (focused < 0 && count > 0 && (key === "Enter" || key in ARROWS)) return { focused: 0 };
  if (!state.isEditable) return readOnlyKey(key, focused, count);
  if (/^[1-4]$/.test(key)) return chooseClass(state, Number(key) - 1);
  if (key === "n" || key === "Insert") return insert(state);
  if (focused < 0) return null;
  const arrow = ARROWS[key];
  if (arrow) return move(state, arrow, shift ? 5 : alt ? 0.2 : 1);
  if (key === "Delete" || key === "Backspace") {
    return { scene: erasePoint(scene, focused), focused: Math.min(focused, count - 2) };
  }
  return null;
}

/** Past the last point (or before the first) the focus leaves the stage, so that nobody is caught. */
function walk(focused: number, count: number, isBack: boolean): KeyResult | null {
  if (focused < 0) return null;
  const next = focused + (isBack ? -1 : 1);
  return next < 0 || next >= count ? null : { focused: next };
}

function readOnlyKey(key: string, focused: number, count: number): KeyResult | null {
  const arrow = ARROWS[key];
  if (!arrow || focused < 0) return null;
  const next = focused + (arrow[0] + arrow[1] > 0 ? 1 : -1);
  return { focused: Math.min(count - 1, Math.max(0, next)) };
}

function chooseClass(state: KeyState, own: number): KeyResult | null {
  if (state.scene.task === "regression" || own >= MOST_CLASSES) return null;
  const chosen: KeyResult = { drawnClass: own };
  if (state.focused >= 0) chosen.scene = setClass(state.scene, state.focused, own);
  return chosen;
}

function insert(state: KeyState): KeyResult {
  const { scene, focused } = state;
  const { view } = scene;
  const place: [number, number] =
    focused >= 0
      ? nudged(scene, pointPlace(scene, focused), [3, 3])
      : [(view.x[0] + view.x[1]) / 2, (view.y[0] + view.y[1]) / 2];
  return { scene: addPoint(scene, place, state.drawnClass), focused: scene.x.length };
}

function move(state: KeyState, arrow: [number, number], strides: number): KeyResult {
  const { scene, focused } = state;
  const by: [number, number] = [arrow[0] * strides, arrow[1] * strides];
  const place = nudged(scene, pointPlace(scene, focused), by);
  return { scene: movePoint(scene, focused, place), key: `keys-${focused}` };
}

function nudged(
  scene: Scene,
  [a, b]: [number, number],
  [across, up]: [number, number],
): [number, number] {
  const { view } = scene;
  const inside = (value: number, [low, high]: [number, number]) =>
    Math.min(high, Math.max(low, value));
  return [
    inside(a + across * STRIDE * (view.x[1] - view.x[0]), view.x),
    inside(b + up * STRIDE * (view.y[1] - view.y[0]), view.y),
  ];
}
