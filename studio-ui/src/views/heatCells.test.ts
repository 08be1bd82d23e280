import { describe, expect, it } from "vitest";
import { cellsOf, darkness, neighbour } from "./heatCells";

const map = {
  C: [0.1, 1, 10],
  gamma: [0.5, 5],
  score: {
    values: new Float32Array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95]),
    shape: [2, 3] as [number, number],
  },
  best: { C: 10, gamma: 5, score: 0.95 },
  folds: 5,
};

describe("cells of a map", () => {
  it("have the score of their C and gamma", () => {
    const cell = cellsOf(map)[1]![0]!;
    expect([cell.C, cell.gamma]).toEqual([0.1, 5]);
    expect(cell.score).toBeCloseTo(0.8);
  });
  it("mark the best one alone", () => {
    const best = cellsOf(map)
      .flat()
      .filter((own) => own.isBest);
    expect(best.map((own) => [own.row, own.column])).toEqual([[1, 2]]);
  });
});

it("darkness rises with the score, and is even where all scores are", () => {
  expect(darkness(0.5, 0.5, 1)).toBe(0);
  expect(darkness(1, 0.5, 1)).toBe(1);
  expect(darkness(0.7, 0.7, 0.7)).toBe(0.5);
  expect(darkness(Number.NaN, 0, 1)).toBe(0);
});

it("arrow keys stay on the map", () => {
  expect(neighbour("ArrowUp", [0, 0], [2, 3])).toEqual([1, 0]);
  expect(neighbour("ArrowUp", [1, 0], [2, 3])).toEqual([1, 0]);
  expect(neighbour("ArrowLeft", [0, 0], [2, 3])).toEqual([0, 0]);
  expect(neighbour("End", [0, 0], [2, 3])).toEqual([0, 2]);
  expect(neighbour("a", [0, 0], [2, 3])).toBeNull();
});
