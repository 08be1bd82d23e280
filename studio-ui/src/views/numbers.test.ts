import { describe, expect, it } from "vitest";
import {
  linearScale,
  linearTicks,
  logScale,
  logTicks,
  percent,
  rangeOf,
  readable,
  roomy,
} from "./numbers";

describe("readable", () => {
  it("keeps four digits and no zeros at the end", () => {
    expect(readable(0.123456)).toBe("0.1235");
    expect(readable(2.5)).toBe("2.5");
    expect(readable(1234567)).toBe("1,234,567");
  });
  it("writes small and large numbers with an exponent", () => {
    expect(readable(0.0000123)).toBe("1.23e-5");
    expect(readable(1.5e12)).toBe("1.5e12");
  });
  it("has a sign for what is no number", () => {
    expect([readable(null), readable(Number.NaN), readable(Infinity)]).toEqual(["–", "–", "∞"]);
  });
});

describe("percent", () => {
  it("keeps what is small visible", () => {
    expect([percent(0.5), percent(0.0312), percent(0.0004), percent(0)]).toEqual([
      "50 %",
      "3.1 %",
      "0.04 %",
      "0 %",
    ]);
  });
});

describe("ticks", () => {
  it("are round and within the range", () => {
    expect(linearTicks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(linearTicks(-0.3, 0.31, 3)).toEqual([-0.25, 0, 0.25]);
  });
  it("are powers of ten on a logarithmic axis, thinned where there are many", () => {
    expect(logTicks(0.5, 200)).toEqual([1, 10, 100]);
    expect(logTicks(1e-12, 1, 4)).toHaveLength(4);
  });
  it("do without an empty range", () => {
    expect(linearTicks(2, 2)).toEqual([2]);
  });
});

describe("scales", () => {
  it("lead there and back", () => {
    for (const scale of [linearScale([2, 8], [10, 110]), logScale([0.01, 100], [200, 0])]) {
      expect(scale.value(scale.place(3))).toBeCloseTo(3);
    }
  });
});

describe("ranges", () => {
  it("ignore what is not finite", () => {
    expect(rangeOf([Number.NaN, 3, Infinity, -1])).toEqual([-1, 3]);
    expect(rangeOf([])).toEqual([0, 1]);
  });
  it("are never empty with room around them", () => {
    const [low, high] = roomy([4, 4]);
    expect(high).toBeGreaterThan(low);
  });
});
