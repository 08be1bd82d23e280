import { describe, expect, it } from "vitest";
import { rgbOf } from "../looks/colours";
import type { Curve, Plane, Scene } from "../protocol";
import { EMPTY_SCENE } from "../state/scene";
import { curveAt } from "./drawCurve";
import { lineEnds } from "./drawPlane";
import { numberOf } from "./drawPoints";
import { frameOf } from "./frame";
import { markPath } from "./markPath";
import { placeLines, pointLines } from "./readout";
import { boundarySides } from "./regions";
import { cellOf, isFlat, valueBetween, verdict } from "./surface";
import { escaped, SvgPen } from "./svgPen";

const SCENE: Scene = {
  ...EMPTY_SCENE,
  x: [
    [0, 1],
    [1, 0],
  ],
  y: [0, 1],
  view: { x: [0, 4], y: [0, 2] },
};

/** Four columns and two rows over the view [0, 4] x [0, 2]: the score is x - 2. */
const PLANE: Plane = {
  surface: {
    values: new Float32Array([-1.5, -0.5, 0.5, 1.5, -1.5, -0.5, 0.5, 1.5]),
    shape: [2, 4],
  },
  low: -2,
  high: 2,
  kind: "score",
  winner: { values: new Uint8Array([0, 0, 1, 1, 0, 0, 1, 1]), shape: [2, 4] },
  classes: [0, 1],
  hasMargins: true,
  alpha: new Float32Array([0.5, 0]),
  slack: new Float32Array([0, 0.25]),
  supportKind: new Uint8Array([1, 0]),
  weight: null,
  hulls: null,
  regions: [],
  members: null,
};

describe("the surface", () => {
  it("has values in the middles of its cells and straight lines between", () => {
    expect(cellOf(PLANE, SCENE.view, [0.5, 0.5])).toEqual([0, 0]);
    for (const x of [0, 0.5, 1.3, 2, 3.9]) {
      const [column, row] = cellOf(PLANE, SCENE.view, [x, 1]);
      expect(valueBetween(PLANE, column, row)).toBeCloseTo(x - 2, 5);
    }
    expect(valueBetween(PLANE, 9, 0)).toBeNaN();
  });

  it("says who wins, and how clearly", () => {
    expect(verdict(PLANE, -2, 0)).toEqual([0, 1]);
    expect(verdict(PLANE, 1, 1)).toEqual([1, 0.5]);
    expect(verdict({ ...PLANE, kind: "probability", low: 0, high: 1 }, 0.75, 1)).toEqual([1, 0.5]);
    expect(verdict({ ...PLANE, kind: "confidence", low: 0, high: 1 }, 0.3, 2)).toEqual([2, 0.3]);
  });

  it("knows flat pieces", () => {
    expect(isFlat(PLANE)).toBe(false);
    const values = new Float32Array([0, 0, 0, 1, 0, 0, 0, 1]);
    expect(isFlat({ ...PLANE, surface: { values, shape: [2, 4] } })).toBe(true);
  });
});

describe("what is said", () => {
  const picture = { plane: PLANE, curve: null, isTest: new Uint8Array([0, 1]) };

  it("tells a point's class, place, role and multiplier", () => {
    expect(pointLines(SCENE, picture, 0)).toEqual([
      "class A (circle)",
      "x1 0",
      "x2 1",
      "support vector on the margin",
      "α 0.5",
      "slack ξ 0",
    ]);
    expect(pointLines(SCENE, picture, 1)).toContain("kept for testing");
  });

  it("tells what is predicted at a place", () => {
    expect(placeLines(SCENE, picture, [3, 1], false)).toEqual(["predicts B", "score 1"]);
    expect(placeLines(SCENE, picture, [4, 2], true)).toEqual(["predicts B", "score 1.5"]);
    expect(placeLines(SCENE, null, [3, 1], false)).toEqual([]);
  });

  it("takes nothing from a picture of more points than there are", () => {
    expect(numberOf(new Float32Array(3), SCENE, 0)).toBeUndefined();
    expect(numberOf(new Float32Array(1), SCENE, 1)).toBeUndefined();
    expect(numberOf(new Float32Array(2), SCENE, 1)).toBe(0);
  });
});

describe("lines", () => {
  it("finds where w.x + b = 0 leaves the view, steep or flat", () => {
    const frame = frameOf(600, 600, { x: [-1, 1], y: [-1, 1] }, false);
    expect(lineEnds(frame, [0, 0], 1)).toBeNull();
    const [x1, , x2] = lineEnds(frame, [1, 0], 0)!;
    expect(x1).toBe(x2);
    const flat = lineEnds(frame, [0, 1], 0)!;
    expect(flat[1]).toBe(flat[3]);
  });

  it("finds the sides between regions of different classes", () => {
    const regions = [
      { x: [0, 1] as [number, number], y: [0, 2] as [number, number], class: 0 },
      { x: [1, 2] as [number, number], y: [0, 1] as [number, number], class: 1 },
      { x: [1, 2] as [number, number], y: [1, 2] as [number, number], class: 0 },
    ];
    expect(boundarySides(regions)).toEqual([
      [1, 0, 1, 1],
      [1, 1, 2, 1],
    ]);
  });

  it("reads a curve between its places", () => {
    const curve = {
      x: new Float32Array([0, 1, 3]),
      y: new Float32Array([0, 2, 0]),
    } as unknown as Curve;
    expect([-1, 0.5, 1, 2, 9].map((x) => curveAt(curve, x))).toEqual([0, 1, 2, 1, 0]);
  });
});

describe("SVG", () => {
  it("escapes what tables bring along", () => {
    const pen = new SvgPen(10, 10, "#fff");
    pen.text('<script>alert("x")</script>&\u0000', 1, 2, { colour: "#000", size: 12 });
    const text = pen.toString();
    expect(text).not.toContain("<script");
    expect(text).toContain("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;");
    expect(escaped("a\u0001b")).toBe("ab");
    expect(
      new DOMParser().parseFromString(text, "image/svg+xml").querySelector("text"),
    ).toBeTruthy();
  });

  it("draws paths, dashes and clips", () => {
    const pen = new SvgPen(10, 10, "#fff");
    pen.within(0, 0, 5, 5, () => pen.path([0, 0, 1.234567, 1], { stroke: "#000", dash: [2, 1] }));
    const text = pen.toString();
    expect(text).toContain('d="M0 0L1.23 1"');
    expect(text).toContain('stroke-dasharray="2 1"');
    expect(text).toContain('clip-path="url(#clip0)"');
  });

  it("gives each class a shape of its own", () => {
    const paths = [0, 1, 2, 3].map((own) => markPath(own, 8, 8, 5));
    expect(new Set(paths).size).toBe(4);
    for (const path of paths) expect(path).toMatch(/^M.*Z$/);
  });
});

describe("rgbOf", () => {
  it("reads long and short colours", () => {
    expect(rgbOf("#0072b2")).toEqual([0, 114, 178]);
    expect(rgbOf("#fff")).toEqual([255, 255, 255]);
    expect(rgbOf("red")).toEqual([128, 128, 128]);
  });
});
