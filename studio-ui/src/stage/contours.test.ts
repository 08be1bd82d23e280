// @vitest-environment node
import { describe, expect, it } from "vitest";
import { blurred, cellSides, contour, indicator, padded, type ValueGrid } from "./contours";

function gridOf(rows: number, columns: number, value: (x: number, y: number) => number): ValueGrid {
  const values = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      values[row * columns + column] = value(column, row);
    }
  }
  return { values, rows, columns };
}

function places(line: number[]): [number, number][] {
  return Array.from({ length: line.length / 2 }, (_, k) => [line[2 * k]!, line[2 * k + 1]!]);
}

describe("contour", () => {
  it("is exact for a plane", () => {
    const lines = contour(
      gridOf(8, 11, (x, y) => x - 2 * y + 0.3),
      0,
    );
    expect(lines).toHaveLength(1);
    for (const [x, y] of places(lines[0]!)) expect(x - 2 * y + 0.3).toBeCloseTo(0, 5);
  });

  it("closes a circle, and all its places lie on it", () => {
    const lines = contour(
      gridOf(41, 41, (x, y) => Math.hypot(x - 20, y - 20)),
      12.5,
    );
    expect(lines).toHaveLength(1);
    const ring = places(lines[0]!);
    expect(ring[0]).toEqual(ring[ring.length - 1]);
    for (const [x, y] of ring) expect(Math.hypot(x - 20, y - 20)).toBeCloseTo(12.5, 1);
  });

  it("has one line for each level of a margin", () => {
    const grid = gridOf(20, 20, (x, y) => (x + y - 19) / 5);
    for (const level of [-1, 0, 1]) expect(contour(grid, level)).toHaveLength(1);
    expect(contour(grid, 100)).toHaveLength(0);
  });

  it("cuts a saddle as its middle says", () => {
    const saddle = (middle: number): ValueGrid => ({
      values: [1, -1 + middle, -1 + middle, 1],
      rows: 2,
      columns: 2,
    });
    expect(contour(saddle(0.5), 0)).toHaveLength(2);
    expect(contour(saddle(-0.5), 0)).toHaveLength(2);
    // High: the corner at (1, 0) is cut off. Low: the one at (0, 0) is.
    const cutsOff = (grid: ValueGrid, x: number, y: number) =>
      contour(grid, 0).some((line) =>
        places(line).every(([a, b]) => Math.hypot(a - x, b - y) < 1 && (a === x || b === y)),
      );
    expect(cutsOff(saddle(0.5), 1, 0)).toBe(true);
    expect(cutsOff(saddle(-0.5), 0, 0)).toBe(true);
  });

  it("leaves cells with a NaN out", () => {
    const grid = gridOf(3, 5, (x, y) => (x === 4 ? Number.NaN : y - 1.5));
    const xs = contour(grid, 0).flatMap((line) => places(line).map(([x]) => x));
    expect(Math.max(...xs)).toBe(3);
  });
});

describe("cellSides", () => {
  it("follows the sides of cells", () => {
    const lines = cellSides(gridOf(3, 4, (x) => (x < 2 ? 0 : 1)));
    expect(lines).toEqual([[1.5, -0.5, 1.5, 2.5]]);
  });

  it("is empty where all cells are alike", () => {
    expect(cellSides(gridOf(3, 4, () => 2))).toEqual([]);
  });
});

describe("padded, indicator, blurred", () => {
  it("goes on in a straight line", () => {
    const grid = padded(
      gridOf(3, 4, (x, y) => 2 * x - y),
      true,
    );
    expect([grid.rows, grid.columns]).toEqual([5, 6]);
    const expected = gridOf(5, 6, (x, y) => 2 * (x - 1) - (y - 1));
    expect(Array.from(grid.values)).toEqual(Array.from(expected.values));
  });

  it("goes on as it is", () => {
    const grid = padded(
      gridOf(2, 2, (x) => x),
      false,
    );
    expect(Array.from(grid.values).slice(0, 4)).toEqual([0, 0, 1, 1]);
  });

  it("keeps the middle of a straight line between classes", () => {
    const share = blurred(
      indicator(
        gridOf(9, 20, (x) => (x < 10 ? 3 : 1)),
        3,
      ),
      4,
    );
    for (const [x] of places(contour(share, 0.5)[0]!)) expect(x).toBeCloseTo(9.5, 5);
  });
});
