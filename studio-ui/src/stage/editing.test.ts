import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Scene } from "../protocol";
import { EMPTY_SCENE } from "../state/scene";
import { addPoint, erasePoint, movePoint, setClass } from "./edits";
import { frameOf, placeAt, pointAt, xPixel, yPixel } from "./frame";
import { Gestures } from "./gestures";
import { pressKey } from "./keyboard";
import type { StageTool } from "./tools";

const PLANE: Scene = {
  ...EMPTY_SCENE,
  x: [
    [-1, 0],
    [1, 0],
    [0, 2],
  ],
  y: [0, 1, 0],
};
const CURVE: Scene = {
  ...EMPTY_SCENE,
  task: "regression",
  x: [[0], [1]],
  y: [5, 6],
  classes: [],
};

describe("edits", () => {
  it("moves, adds and erases without touching the scene before", () => {
    const before = JSON.stringify(PLANE);
    expect(movePoint(PLANE, 1, [2, 3]).x[1]).toEqual([2, 3]);
    expect(addPoint(PLANE, [2, 3], 1)).toMatchObject({ y: [0, 1, 0, 1] });
    expect(erasePoint(PLANE, 0)).toMatchObject({
      x: [
        [1, 0],
        [0, 2],
      ],
      y: [1, 0],
    });
    expect(setClass(PLANE, 2, 1).y).toEqual([0, 1, 1]);
    expect(JSON.stringify(PLANE)).toBe(before);
  });

  it("moves both feature and value of a regression", () => {
    expect(movePoint(CURVE, 0, [0.5, 9])).toMatchObject({ x: [[0.5], [1]], y: [9, 6] });
    expect(addPoint(CURVE, [2, 7], 3)).toMatchObject({ x: [[0], [1], [2]], y: [5, 6, 7] });
    expect(setClass(CURVE, 0, 1)).toBe(CURVE);
  });

  it("names classes as they come", () => {
    expect(addPoint(PLANE, [0, 0], 3).classes).toEqual(["A", "B", "C", "D"]);
    const named = { ...PLANE, classes: ["C", "B"] };
    expect(addPoint(named, [0, 0], 2).classes).toEqual(["C", "B", "class 3"]);
  });
});

describe("frame", () => {
  const frame = frameOf(600, 600, PLANE.view, false);

  it("finds back from pixels to places", () => {
    const [a, b] = placeAt(frame, xPixel(frame, 1.25), yPixel(frame, -0.5));
    expect(a).toBeCloseTo(1.25);
    expect(b).toBeCloseTo(-0.5);
  });

  it("keeps places within the view", () => {
    expect(placeAt(frame, -100, 9999)).toEqual([-3, -3]);
  });

  it("finds the nearest point within reach", () => {
    const x = xPixel(frame, 1) + 5;
    const y = yPixel(frame, 0);
    expect(pointAt(frame, PLANE, x, y, 12)).toBe(1);
    expect(pointAt(frame, PLANE, x, y, 3)).toBe(-1);
    expect(pointAt(frame, CURVE, x, y, 12)).toBe(-1);
  });
});

describe("keyboard", () => {
  const state = { scene: PLANE, focused: -1, isEditable: true, drawnClass: 0 };

  it("enters by Enter or an arrow, walks by Tab and lets go at the ends", () => {
    expect(pressKey(state, "Tab", false)).toBeNull();
    expect(pressKey(state, "Enter", false)).toEqual({ focused: 0 });
    expect(pressKey({ ...state, focused: 0 }, "Tab", false)).toEqual({ focused: 1 });
    expect(pressKey({ ...state, focused: 1 }, "Tab", true)).toEqual({ focused: 0 });
    expect(pressKey({ ...state, focused: 2 }, "Tab", false)).toBeNull();
    expect(pressKey({ ...state, focused: 0 }, "Tab", true)).toBeNull();
    expect(pressKey({ ...state, focused: 0 }, "Escape", false)).toEqual({ focused: -1 });
  });

  it("moves by a hundredth of the view, farther with shift, never out of it", () => {
    const at = { ...state, focused: 1 };
    expect(pressKey(at, "ArrowRight", false)?.scene?.x[1]?.[0]).toBeCloseTo(1.06);
    expect(pressKey(at, "ArrowUp", true)?.scene?.x[1]?.[1]).toBeCloseTo(0.3);
    const edge = { ...at, scene: movePoint(PLANE, 1, [3, 3]) };
    expect(pressKey(edge, "ArrowRight", true)?.scene?.x[1]).toEqual([3, 3]);
  });

  it("erases, draws and chooses classes", () => {
    const at = { ...state, focused: 2 };
    expect(pressKey(at, "Delete", false)).toMatchObject({ focused: 1, scene: { y: [0, 1] } });
    expect(pressKey(at, "2", false)).toMatchObject({ drawnClass: 1, scene: { y: [0, 1, 1] } });
    expect(pressKey(state, "4", false)).toEqual({ drawnClass: 3 });
    expect(pressKey({ ...state, drawnClass: 1 }, "n", false)).toMatchObject({
      focused: 3,
      scene: { y: [0, 1, 0, 1] },
    });
    const alone = { ...state, focused: 0, scene: { ...PLANE, x: [[0, 0]], y: [0] } };
    expect(pressKey(alone, "Delete", false)).toMatchObject({ focused: -1 });
  });

  it("only walks where nothing can be edited", () => {
    const at = { ...state, focused: 1, isEditable: false };
    expect(pressKey(at, "Delete", false)).toBeNull();
    expect(pressKey(at, "ArrowRight", false)).toEqual({ focused: 2 });
    expect(pressKey(at, "ArrowDown", false)).toEqual({ focused: 0 });
  });
});

describe("gestures", () => {
  let scene: Scene;
  let keys: (string | null)[];
  let tool: StageTool;
  let settled: number;
  let gestures: Gestures;
  const frame = frameOf(600, 600, PLANE.view, false);
  const at = (x: number, y: number): [number, number] => [xPixel(frame, x), yPixel(frame, y)];

  beforeEach(() => {
    scene = PLANE;
    keys = [];
    tool = "move";
    settled = 0;
    vi.stubGlobal("requestAnimationFrame", () => 1);
    vi.stubGlobal("cancelAnimationFrame", () => {});
    gestures = new Gestures({
      frame: () => frame,
      scene: () => scene,
      tool: () => ({ tool, class: 1 }),
      edit: (next, key) => {
        scene = next;
        keys.push(key);
      },
      settle: () => {
        settled += 1;
      },
      hover: () => {},
      focusPoint: () => {},
    });
  });

  it("drags a point, once a frame, and the last move counts", () => {
    expect(gestures.press(...at(1, 0), 12, false)).toBe(true);
    for (const x of [1.2, 1.4, 2]) gestures.move(...at(x, 1), 12);
    expect(keys).toHaveLength(0);
    gestures.release();
    expect(scene.x[1]?.[0]).toBeCloseTo(2);
    expect(keys).toHaveLength(1);
    expect(settled).toBe(1);
    expect(gestures.isBusy).toBe(false);
  });

  it("does nothing beside the points but where it draws", () => {
    expect(gestures.press(...at(-2, -2), 12, false)).toBe(false);
    tool = "draw";
    expect(gestures.press(...at(-2, -2), 12, false)).toBe(true);
    gestures.move(...at(-1, -2), 12);
    gestures.release();
    expect(scene.y).toEqual([0, 1, 0, 1, 1]);
    expect(new Set(keys).size).toBe(1);
  });

  it("erases with its tool and with the right button", () => {
    gestures.press(...at(0, 2), 12, true);
    gestures.release();
    expect(scene.y).toEqual([0, 1]);
    tool = "erase";
    gestures.press(...at(-1, 0), 12, false);
    gestures.release();
    expect(scene.y).toEqual([1]);
  });

  it("does not draw outside the plot", () => {
    tool = "draw";
    expect(gestures.press(3, 300, 12, false)).toBe(false);
    gestures.place(3, 300);
    expect(scene).toBe(PLANE);
  });
});
