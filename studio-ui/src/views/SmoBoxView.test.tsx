import { render } from "preact";
import { describe, expect, it } from "vitest";
import type { SmoBox } from "../protocol";
import { alongLine, isClipped, limitsOf, SmoBoxView } from "./SmoBoxView";

const box: SmoBox = {
  first: 31,
  second: 28,
  signs: [1, -1],
  bounds: [1, 1],
  before: [0, 0],
  after: [1, 1],
  unclipped: 1.9,
  low: 0,
  high: 1,
  line: [
    [0, 0],
    [1, 1],
  ],
};

describe("the box of a pair", () => {
  it("moves along the line that keeps the sum of signed multipliers", () => {
    expect(alongLine(box, 0.4)).toEqual([0.4, 0.4]);
    expect(alongLine({ ...box, signs: [1, 1], before: [0.5, 0.5] }, 0.2)).toEqual([0.8, 0.2]);
  });
  it("knows when it was clipped", () => {
    expect(isClipped(box)).toBe(true);
    expect(isClipped({ ...box, unclipped: 0.4 })).toBe(false);
    expect(isClipped({ ...box, unclipped: Infinity })).toBe(true);
  });
  it("shows an optimum that is near, and not one that is far", () => {
    expect(limitsOf(box)[1][1]).toBeGreaterThan(1.9);
    expect(limitsOf({ ...box, unclipped: 50 })[1][1]).toBeCloseTo(1.22);
  });
  it("is drawn with its parts and a sentence for those who cannot see it", () => {
    const root = document.createElement("div");
    render(<SmoBoxView box={box} />, root);
    expect(root.querySelector("[data-testid=smo-unclipped]")).not.toBeNull();
    expect(root.querySelector("svg")?.getAttribute("aria-label")).toContain("clipped from 1.9");
    render(<SmoBoxView box={{ ...box, unclipped: Number.NaN, bounds: [Infinity, 1] }} />, root);
    expect(root.innerHTML).not.toContain("NaN");
  });
});
