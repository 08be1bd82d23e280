/**
 * Contour lines of a grid by marching squares.
 *
 * Lines are in grid coordinates: x is the column, y the row, and values sit on whole numbers. A line
 * is a flat list x, y, x, y, ...; a closed one ends where it begins.
 */

export interface ValueGrid {
  values: ArrayLike<number>;
  rows: number;
  columns: number;
}

/** The lines on which the grid has a value of `level`; cells with a NaN have none. */
export function contour(grid: ValueGrid, level: number): number[][] {
  const crossings = new Crossings(grid, level);
  for (let row = 0; row < grid.rows - 1; row++) {
    for (let column = 0; column < grid.columns - 1; column++) {
      addCell(crossings, grid, level, row, column);
    }
  }
  return crossings.lines();
}

/**
 * The grid with a frame of one more value around it, so that contours reach the sides of the view:
 * values go on in a straight line, or as they are.
 */
export function padded(grid: ValueGrid, isStraight: boolean): ValueGrid {
  const { values, rows, columns } = grid;
  const wide = columns + 2;
  const found = new Float32Array((rows + 2) * wide);
  const beyond = (edge: number, inner: number) => (isStraight ? 2 * edge - inner : edge);
  for (let row = 0; row < rows; row++) {
    const from = row * columns;
    const to = (row + 1) * wide;
    for (let column = 0; column < columns; column++) {
      found[to + column + 1] = values[from + column]!;
    }
    const last = from + columns - 1;
    found[to] = beyond(values[from]!, values[Math.min(from + 1, last)]!);
    found[to + wide - 1] = beyond(values[last]!, values[Math.max(last - 1, from)]!);
  }
  const top = (rows + 1) * wide;
  for (let column = 0; column < wide; column++) {
    const inner = Math.min(2, rows) * wide + column;
    found[column] = beyond(found[wide + column]!, found[inner]!);
    const under = Math.max(rows - 1, 1) * wide + column;
    found[top + column] = beyond(found[rows * wide + column]!, found[under]!);
  }
  return { values: found, rows: rows + 2, columns: wide };
}

/** Lines between cells of different whole values, along the sides of the cells: exact for trees. */
export function cellSides(grid: ValueGrid): number[][] {
  const { values, rows, columns } = grid;
  const lines: number[][] = [];
  for (let row = 0; row < rows - 1; row++) {
    joinRuns(
      columns,
      (column) => values[row * columns + column] !== values[(row + 1) * columns + column],
      (start, end) => lines.push([start - 0.5, row + 0.5, end - 0.5, row + 0.5]),
    );
  }
  for (let column = 0; column < columns - 1; column++) {
    joinRuns(
      rows,
      (row) => values[row * columns + column] !== values[row * columns + column + 1],
      (start, end) => lines.push([column + 0.5, start - 0.5, column + 0.5, end - 0.5]),
    );
  }
  return lines;
}

function joinRuns(
  length: number,
  isOn: (index: number) => boolean,
  add: (start: number, end: number) => void,
): void {
  let start = -1;
  for (let index = 0; index <= length; index++) {
    const on = index < length && isOn(index);
    if (on && start < 0) start = index;
    if (!on && start >= 0) {
      add(start, index);
      start = -1;
    }
  }
}

/** The grid as another one that is 1 where its value is `wanted` and 0 elsewhere. */
export function indicator(grid: ValueGrid, wanted: number): ValueGrid {
  const { rows, columns } = grid;
  const values = new Uint8Array(rows * columns);
  for (let index = 0; index < values.length; index++) {
    values[index] = grid.values[index] === wanted ? 1 : 0;
  }
  return { values, rows, columns };
}

/** The grid mixed with its neighbours: contours of whole values lose their stairs. */
export function blurred(grid: ValueGrid, times: number): ValueGrid {
  const { rows, columns } = grid;
  let values = Float32Array.from(grid.values);
  for (let round = 0; round < times; round++) {
    values = mixed(mixed(values, rows, columns, 1), rows, columns, columns);
  }
  return { values, rows, columns };
}

/** Each value with a quarter of the two that are `stride` away; those at the sides count twice. */
function mixed(values: Float32Array, rows: number, columns: number, stride: number) {
  const found = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const at = row * columns + column;
      const isFirst = stride === 1 ? column === 0 : row === 0;
      const isLast = stride === 1 ? column === columns - 1 : row === rows - 1;
      const before = values[isFirst ? at : at - stride]!;
      const after = values[isLast ? at : at + stride]!;
      found[at] = values[at]! / 2 + (before + after) / 4;
    }
  }
  return found;
}

function addCell(
  crossings: Crossings,
  grid: ValueGrid,
  level: number,
  row: number,
  column: number,
): void {
  const at = row * grid.columns + column;
  const a = grid.values[at]!;
  const b = grid.values[at + 1]!;
  const c = grid.values[at + grid.columns + 1]!;
  const d = grid.values[at + grid.columns]!;
  if (Number.isNaN(a + b + c + d)) return;
  const corners =
    (a >= level ? 1 : 0) | (b >= level ? 2 : 0) | (c >= level ? 4 : 0) | (d >= level ? 8 : 0);
  if (corners === 0 || corners === 15) return;
  const bottom = () => crossings.across(row, column);
  const top = () => crossings.across(row + 1, column);
  const left = () => crossings.up(row, column);
  const right = () => crossings.up(row, column + 1);
  // A saddle is cut as its middle says.
  const isMiddleHigh = corners === 5 || corners === 10 ? (a + b + c + d) / 4 >= level : false;
  switch (corners) {
    case 1:
    case 14:
      crossings.join(left(), bottom());
      break;
    case 2:
    case 13:
      crossings.join(bottom(), right());
      break;
    case 3:
    case 12:
      crossings.join(left(), right());
      break;
    case 4:
    case 11:
      crossings.join(right(), top());
      break;
    case 6:
    case 9:
      crossings.join(bottom(), top());
      break;
    case 7:
    case 8:
      crossings.join(left(), top());
      break;
    default: {
      const pairsAC = (corners === 5) === isMiddleHigh;
      if (pairsAC) {
        crossings.join(left(), top());
        crossings.join(bottom(), right());
      } else {
        crossings.join(left(), bottom());
        crossings.join(right(), top());
      }
    }
  }
}

/** Crossings of the sides of cells, each with the one or two it is joined to. */
class Crossings {
  private readonly joined = new Map<number, number[]>();

  constructor(
    private readonly grid: ValueGrid,
    private readonly level: number,
  ) {}

  /** The number of the crossing on the side from (row, column) to the next column. */
  across(row: number, column: number): number {
    return (row * this.grid.columns + column) * 2;
  }

  up(row: number, column: number): number {
    return (row * this.grid.columns + column) * 2 + 1;
  }

  join(one: number, other: number): void {
    this.neighbours(one).push(other);
    this.neighbours(other).push(one);
  }

  lines(): number[][] {
    const lines: number[][] = [];
    // Open lines first, from an end; what is left then are rings.
    for (const [start, next] of this.joined) if (next.length === 1) lines.push(this.trace(start));
    for (const [start, next] of this.joined) if (next.length > 0) lines.push(this.trace(start));
    return lines.filter((line) => line.length >= 4);
  }

  private neighbours(crossing: number): number[] {
    let own = this.joined.get(crossing);
    if (!own) {
      own = [];
      this.joined.set(crossing, own);
    }
    return own;
  }

  private trace(start: number): number[] {
    const line: number[] = [];
    let here = start;
    for (;;) {
      this.addPlace(line, here);
      const next = this.neighbours(here).pop();
      if (next === undefined) return line;
      const back = this.neighbours(next);
      back.splice(back.indexOf(here), 1);
      here = next;
    }
  }

  private addPlace(line: number[], crossing: number): void {
    const { columns, values } = this.grid;
    const at = crossing >> 1;
    const isUp = (crossing & 1) === 1;
    const first = values[at]!;
    const second = values[isUp ? at + columns : at + 1]!;
    const share = (this.level - first) / (second - first);
    const column = at % columns;
    const row = (at - column) / columns;
    line.push(isUp ? column : column + share, isUp ? row + share : row);
  }
}
