import { beforeEach, describe, expect, it } from "vitest";
import type { Catalogue, Learner, Scene } from "../protocol";
import { History } from "./history";
import { formatNumber, formatSeconds, formatShare, ticks } from "./numbers";
import * as shared from "./scene";
import { readScene, SceneFileError, writeScene } from "./sceneFile";

const SCENE: Scene = {
  ...shared.EMPTY_SCENE,
  x: [
    [0, 1],
    [1, 0],
  ],
  y: [0, 1],
};

describe("History", () => {
  it("undoes and redoes", () => {
    const own = new History(0);
    own.change(1);
    own.change(2);
    own.undo();
    expect(own.value).toBe(1);
    own.redo();
    expect(own.value).toBe(2);
    own.undo();
    own.undo();
    own.undo();
    expect([own.value, own.canUndo, own.canRedo]).toEqual([0, false, true]);
    own.change(9);
    expect(own.canRedo).toBe(false);
  });

  it("takes a gesture as one step, until it is settled", () => {
    const own = new History(0);
    for (const value of [1, 2, 3]) own.change(value, "drag");
    own.settle();
    own.change(4, "drag");
    own.undo();
    expect(own.value).toBe(3);
    own.undo();
    expect(own.value).toBe(0);
  });

  it("forgets the oldest steps in the end", () => {
    const own = new History(0);
    for (let value = 1; value <= 500; value++) own.change(value);
    while (own.canUndo) own.undo();
    expect(own.value).toBe(300);
  });
});

function learner(name: string, parameters: Learner["parameters"]): Learner {
  return {
    name,
    title: name,
    summary: "",
    family: "margin",
    task: "classification",
    parameters,
    steps: [],
  };
}

const C = {
  name: "C",
  title: "C",
  summary: "",
  kind: "number" as const,
  default: 1,
  low: 0.1,
  high: 10,
};
const KERNEL = {
  name: "kernel",
  title: "kernel",
  summary: "",
  kind: "choice" as const,
  default: "rbf",
  choices: [
    { value: "rbf", title: "rbf" },
    { value: "linear", title: "linear" },
  ],
};
const GAMMA = { ...C, name: "gamma", when: { name: "kernel", values: ["rbf"] } };

describe("the shared scene", () => {
  beforeEach(() => {
    shared.catalogue.value = {
      learners: [learner("SVC", [C, KERNEL, GAMMA]), learner("LinearSVC", [{ ...C, high: 5 }])],
      presets: [],
      lessons: [],
      tables: [],
    } as Catalogue;
    shared.replaceScene({ ...SCENE, learner: "SVC", parameters: { C: 3, kernel: "linear" } });
  });

  it("shows parameters only where they mean something", () => {
    const own = shared.learnerNamed("SVC")!;
    const names = (values: Scene["parameters"]) =>
      shared.visibleParameters(own, values).map((parameter) => parameter.name);
    expect(names({ kernel: "linear" })).toEqual(["C", "kernel"]);
    expect(names({ kernel: "rbf" })).toEqual(["C", "kernel", "gamma"]);
    expect(names({})).toEqual(["C", "kernel", "gamma"]);
  });

  it("keeps values that the next learner can have", () => {
    shared.chooseLearner("LinearSVC");
    expect(shared.scene.value.parameters).toEqual({ C: 3 });
    shared.setParameter("C", 4.5);
    shared.chooseLearner("SVC");
    expect(shared.scene.value.parameters).toEqual({ C: 4.5, kernel: "rbf", gamma: 1 });
    shared.setParameter("C", 8);
    shared.chooseLearner("LinearSVC");
    expect(shared.scene.value.parameters).toEqual({ C: 1 });
  });

  it("undoes a slider's way at once", () => {
    for (const value of [4, 5, 6]) shared.setParameter("C", value, "slider-C");
    shared.settle();
    expect(shared.scene.value.parameters.C).toBe(6);
    shared.undo();
    expect(shared.scene.value.parameters.C).toBe(3);
    expect(shared.canRedo.value).toBe(true);
    shared.redo();
    expect(shared.scene.value.parameters.C).toBe(6);
  });
});

describe("scene files", () => {
  it("come back as they were written", () => {
    const own = { ...SCENE, parameters: { C: 1, kernel: "rbf", flag: true, depth: null } };
    expect(readScene(writeScene(own))).toEqual(own);
  });

  it("drop fields that scenes do not have", () => {
    const text = JSON.stringify({ ...SCENE, extra: 1, __proto__: null });
    expect(Object.keys(readScene(text)).sort()).toEqual(Object.keys(SCENE).sort());
  });

  const wrong: [string, object | string, RegExp][] = [
    ["no JSON", "{", /not JSON/],
    ["a list", "[]", /the scene must be an object/],
    ["another version", { version: 2 }, /version must be 1, got 2/],
    ["another task", { task: "ranking" }, /task must be/],
    ["points of three numbers", { x: [[1, 2, 3]], y: [0] }, /2 numbers, got 3/],
    ["text for a number", { x: [["1", 2]], y: [0] }, /finite numbers, got "1"/],
    ["lists of different lengths", { y: [0] }, /x has 2 points and y has 1/],
    ["a class without a name", { y: [0, 2] }, /classes 0 to 1, got 2/],
    ["half a class", { y: [0, 0.5] }, /classes 0 to 1/],
    ["five classes", { classes: ["a", "b", "c", "d", "e"] }, /at most 4, got 5/],
    ["too large a test share", { testShare: 0.9 }, /from 0 to 0.5/],
    ["an empty view", { view: { x: [1, 1], y: [0, 1] } }, /view.x must be two rising/],
    ["no view", { view: null }, /view must be an object, got null/],
    ["a parameter that is a list", { parameters: { C: [1] } }, /parameters.C/],
    ["one feature", { features: ["x"] }, /two names/],
    ["a long name", { target: "x".repeat(300) }, /target must hold short text/],
    ["a broken seed", { seed: -1 }, /whole number/],
  ];
  it.each(wrong)("refuses %s", (_, change, message) => {
    const text = typeof change === "string" ? change : JSON.stringify({ ...SCENE, ...change });
    expect(() => readScene(text)).toThrow(SceneFileError);
    expect(() => readScene(text)).toThrow(message);
  });

  it("refuses infinity, which JSON writes as 1e999", () => {
    const text = writeScene(SCENE).replace(/"seed": 0/, '"seed": 1e999');
    expect(() => readScene(text)).toThrow(/finite/);
  });

  it("refuses too many points", () => {
    const x = Array.from({ length: 20_001 }, () => [0, 0]);
    expect(() => readScene(JSON.stringify({ ...SCENE, x, y: x.map(() => 0) }))).toThrow(/20000/);
  });
});

describe("numbers", () => {
  it("reads well", () => {
    expect(
      [0, 1, 0.1234567, -2.5, 123456, 1.5e-7, 2e9].map((value) => formatNumber(value)),
    ).toEqual(["0", "1", "0.123", "−2.5", "123456", "1.5e−7", "2e9"]);
    expect([Number.NaN, Infinity, -Infinity].map((value) => formatNumber(value))).toEqual([
      "–",
      "∞",
      "−∞",
    ]);
    expect([0, 0.055, 0.123456, 1].map(formatShare)).toEqual(["0 %", "5.5 %", "12.3 %", "100 %"]);
    expect([2e-6, 0.0123, 2.3456].map(formatSeconds)).toEqual(["2 µs", "12 ms", "2.35 s"]);
  });

  it("has round ticks within the range", () => {
    expect(ticks(-1.1, 1.2, 5)).toEqual([-1, -0.5, 0, 0.5, 1]);
    expect(ticks(0, 1, 4)).toEqual([0, 0.5, 1]);
    expect(ticks(0.1, 0.4, 3)).toEqual([0.1, 0.2, 0.3, 0.4]);
    expect(ticks(1, 1, 4)).toEqual([]);
  });
});
