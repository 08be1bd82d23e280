import { expect, it } from "vitest";
import { counted, formatError, formatNumber, formatShare, readNumber, readShare } from "./numbers";

it("reads shares however people write them", () => {
  for (const text of ["30", "30%", "30 %", " 30 % ", "0.3", "0,3", ".3"]) {
    expect(readShare(text)).toBeCloseTo(0.3, 12);
  }
  expect(readShare("0.5")).toBe(0.5);
  expect(readShare("0.5 %")).toBe(0.005);
  expect(readShare("1")).toBe(0.01);
  expect(readShare("0")).toBe(0);
  for (const text of ["", "%", "many"]) expect(readShare(text)).toBeNaN();
  for (const share of [0, 0.05, 0.255, 0.5]) expect(readShare(formatShare(share))).toBe(share);
});

it("reads the numbers that it writes", () => {
  for (const value of [0, -2.5, 1e-5, -3e-7, 1200, 2e8]) {
    expect(readNumber(formatNumber(value))).toBe(value);
  }
});

it("counts one thing and many", () => {
  expect(counted(1, "row")).toBe("1 row");
  expect(counted(0, "row")).toBe("0 rows");
  expect(counted(1200, "leaf", "leaves")).toBe("1,200 leaves");
});

it("takes what rounding leaves of an error for none", () => {
  expect(formatError(4.4e-17)).toBe("0");
  expect(formatError(2e-9)).toBe("2e−9");
});
