import type { TuningMap } from "../protocol";

export interface Cell {
  row: number;
  column: number;
  C: number;
  gamma: number;
  score: number;
  isBest: boolean;
}

/** The cells of a map, row by row from the smallest gamma up. */
export function cellsOf(map: TuningMap): Cell[][] {
  const [, columns] = map.score.shape;
  return map.gamma.map((gamma, row) =>
    map.C.map((C, column) => ({
      row,
      column,
      C,
      gamma,
      score: map.score.values[row * columns + column] ?? Number.NaN,
      isBest: isSame(C, map.best.C) && isSame(gamma, map.best.gamma),
    })),
  );
}

function isSame(one: number, other: number): boolean {
  return Math.abs(one - other) <= 1e-9 * Math.max(Math.abs(one), Math.abs(other));
}

/** How dark a score is, 0 to 1: the scores that matter are near the best, so those are told apart. */
export function darkness(score: number, low: number, high: number): number {
  if (!Number.isFinite(score)) return 0;
  if (!(high > low)) return 0.5;
  return ((score - low) / (high - low)) ** 3;
}

const READ_UNTIL = 0.7; // of the darkness, dark letters can be read

/** How strong the colour of a cell is. Tones on which neither dark nor light letters can be read are left out. */
export function strength(dark: number): number {
  return isDark(dark)
    ? 0.92 + (0.08 * (dark - READ_UNTIL)) / (1 - READ_UNTIL)
    : 0.03 + (0.57 * dark) / READ_UNTIL;
}

export function isDark(dark: number): boolean {
  return dark >= READ_UNTIL;
}

/** The cell that an arrow key leads to; null for other keys. */
export function neighbour(
  key: string,
  [row, column]: [number, number],
  [rows, columns]: [number, number],
): [number, number] | null {
  const within = (value: number, count: number) => Math.min(count - 1, Math.max(0, value));
  switch (key) {
    case "ArrowUp":
      return [within(row + 1, rows), column];
    case "ArrowDown":
      return [within(row - 1, rows), column];
    case "ArrowLeft":
      return [row, within(column - 1, columns)];
    case "ArrowRight":
      return [row, within(column + 1, columns)];
    case "Home":
      return [row, 0];
    case "End":
      return [row, columns - 1];
    default:
      return null;
  }
}
