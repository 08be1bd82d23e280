// @vitest-environment node
import { describe, expect, it } from "vitest";
import { placeOf, type SliderScale, stepped, valueAt } from "./scales";

const C: SliderScale = { low: 0.01, high: 1000, scale: "log", isInteger: false };
const depth: SliderScale = { low: 1, high: 20, scale: "linear", isInteger: true };
const trees: SliderScale = { low: 1, high: 500, scale: "log", isInteger: true };
const share: SliderScale = { low: 0, high: 0.5, scale: "linear", isInteger: false };
const signed: SliderScale = { low: -1, high: 1, scale: "linear", isInteger: false };

describe("scales", () => {
  it("has its ends at 0 and 1", () => {
    for (const scale of [C, depth, trees, share, signed]) {
      expect(valueAt(0, scale)).toBe(scale.low);
      expect(valueAt(1, scale)).toBe(scale.high);
      expect(valueAt(-3, scale)).toBe(scale.low);
      expect(placeOf(scale.low, scale)).toBe(0);
      expect(placeOf(scale.high, scale)).toBe(1);
      expect(placeOf(1e9, scale)).toBe(1);
    }
  });

  it("is logarithmic: powers of ten lie equally far apart", () => {
    const places = [0.01, 0.1, 1, 10, 100, 1000].map((value) => placeOf(value, C));
    places.forEach((place, index) => {
      expect(place).toBeCloseTo(index / 5, 12);
    });
    expect(valueAt(0.4, C)).toBe(1);
  });

  it("gives numbers of three digits that come back to themselves", () => {
    for (const place of [0.123, 0.377, 0.5, 0.811]) {
      const value = valueAt(place, C);
      expect(String(value).replace(/^0\.0*|\./g, "").length).toBeLessThanOrEqual(3);
      expect(valueAt(placeOf(value, C), C)).toBe(value);
    }
  });

  it("meets zero exactly on a linear scale", () => {
    expect(valueAt(0.5, signed)).toBe(0);
    expect(valueAt(0.3, share)).toBe(0.15);
  });

  it("falls back to a linear scale where a logarithm has no meaning", () => {
    expect(valueAt(0.5, { low: 0, high: 10, scale: "log", isInteger: false })).toBe(5);
  });

  it("steps of the arrow keys always change an integer", () => {
    expect(stepped(1, 1, trees)).toBe(2);
    expect(stepped(2, -1, trees)).toBe(1);
    expect(stepped(5, 1, depth)).toBe(6);
    expect(stepped(20, 1, depth)).toBe(20);
    expect(stepped(1, 1, C)).toBeGreaterThan(1);
    expect(stepped(1, -1, C)).toBeLessThan(1);
  });
});
