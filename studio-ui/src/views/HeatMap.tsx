import { useRef, useState } from "preact/hooks";
import type { TuningMap } from "../protocol";
import { type Cell, cellsOf, darkness, isDark, neighbour, strength } from "./heatCells";
import { percent, rangeOf, readable } from "./numbers";
import { useWidth } from "./useWidth";

const LEFT = 62;
const BOTTOM = 46;
const TOP = 22;
const RIGHT = 6;

/** Cross-validated scores over C and gamma; a click or Enter chooses a machine. */
export function HeatMap(props: {
  map: TuningMap;
  chosen: { C: number; gamma: number } | null;
  onChoose: (C: number, gamma: number) => void;
}) {
  const { ref, width: room, zoom } = useWidth<HTMLDivElement>(520);
  const body = useRef<SVGSVGElement>(null);
  const cells = cellsOf(props.map);
  const columns = props.map.C.length;
  const best = cells.flat().find((own) => own.isBest) ?? cells[0]?.[0];
  const [focused, setFocused] = useState<[number, number]>([best?.row ?? 0, best?.column ?? 0]);
  const [hovered, setHovered] = useState<Cell | null>(null);
  const width = Math.min(room, 720);
  const side = Math.max(14, (width - LEFT - RIGHT) / Math.max(1, columns));
  const tall = Math.min(side, 46);
  const height = TOP + tall * cells.length + BOTTOM;
  const [low, high] = rangeOf(props.map.score.values);
  const told = hovered ?? cells[focused[0]]?.[focused[1]] ?? best;
  const isChosen = (cell: Cell) => cell.C === props.chosen?.C && cell.gamma === props.chosen?.gamma;

  const onKeyDown = (event: KeyboardEvent, cell: Cell) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      props.onChoose(cell.C, cell.gamma);
      return;
    }
    const next = neighbour(event.key, [cell.row, cell.column], [cells.length, columns]);
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    setFocused(next);
    setHovered(null);
    body.current?.querySelector<SVGGElement>(`[data-cell="${next[0]}-${next[1]}"]`)?.focus();
  };

  return (
    <figure class="v-figure heat" data-testid="heat-map">
      <figcaption>{`Accuracy in ${props.map.folds}-fold cross-validation`}</figcaption>
      <div ref={ref} class="v-fit">
        <svg
          ref={body}
          class="v-chart"
          width={width * zoom}
          height={height * zoom}
          viewBox={`0 0 ${width} ${height}`}
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: it is drawn, and walked through by keys
          role="grid"
          aria-label="Cross-validated accuracy over C, from left to right, and gamma, upwards. Arrow keys move, Enter shows the machine."
          onPointerLeave={() => setHovered(null)}
        >
          {cells.map((row, r) => (
            <g key={props.map.gamma[r]} role="row">
              {row.map((cell) => (
                <g
                  key={cell.C}
                  role="gridcell"
                  class="heat-cell"
                  tabindex={cell.row === focused[0] && cell.column === focused[1] ? 0 : -1}
                  data-cell={`${cell.row}-${cell.column}`}
                  data-testid={`heat-cell-${cell.row}-${cell.column}`}
                  aria-selected={isChosen(cell)}
                  aria-label={spokenCell(cell)}
                  onPointerEnter={() => setHovered(cell)}
                  onFocus={() => setFocused([cell.row, cell.column])}
                  onClick={() => {
                    setFocused([cell.row, cell.column]);
                    props.onChoose(cell.C, cell.gamma);
                  }}
                  onKeyDown={(event) => onKeyDown(event, cell)}
                >
                  <CellPicture
                    cell={cell}
                    x={LEFT + side * cell.column}
                    y={TOP + tall * (cells.length - 1 - cell.row)}
                    width={side}
                    height={tall}
                    dark={darkness(cell.score, low, high)}
                    isChosen={isChosen(cell)}
                  />
                </g>
              ))}
            </g>
          ))}
          {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: a group of SVG takes no focus */}
          <g aria-hidden="true">
            <AxisNames map={props.map} side={side} tall={tall} height={height} width={width} />
          </g>
        </svg>
      </div>
      <HeatLegend low={low} high={high} />
      {told && (
        <p class="heat-told" data-testid="heat-told">
          {spokenCell(told)}
        </p>
      )}
      <details class="v-details">
        <summary>As a table</summary>
        <HeatTable map={props.map} cells={cells} />
      </details>
    </figure>
  );
}

function CellPicture(props: {
  cell: Cell;
  x: number;
  y: number;
  width: number;
  height: number;
  dark: number;
  isChosen: boolean;
}) {
  const { cell, x, y, width, height } = props;
  const hasText = width >= 40 && height >= 20;
  return (
    <>
      <rect class="heat-plate" x={x} y={y} width={width} height={height} />
      <rect
        class="heat-fill"
        x={x + 0.5}
        y={y + 0.5}
        width={width - 1}
        height={height - 1}
        fill-opacity={strength(props.dark)}
      />
      {hasText && Number.isFinite(cell.score) && (
        <text
          class={isDark(props.dark) ? "heat-text is-on-dark" : "heat-text"}
          x={x + width / 2}
          y={y + height / 2 + 4}
          text-anchor="middle"
        >
          {(100 * cell.score).toFixed(1)}
        </text>
      )}
      {cell.isBest && (
        <rect class="heat-best" x={x + 2} y={y + 2} width={width - 4} height={height - 4} />
      )}
      {cell.isBest && <path class="heat-star" d={star(x + width - 8, y + 8, 6)} />}
      <rect
        class={props.isChosen ? "heat-ring is-chosen" : "heat-ring"}
        x={x + 1}
        y={y + 1}
        width={width - 2}
        height={height - 2}
      />
    </>
  );
}

function AxisNames(props: {
  map: TuningMap;
  side: number;
  tall: number;
  height: number;
  width: number;
}) {
  const { map, side, tall, height } = props;
  const every = Math.max(1, Math.ceil(44 / side));
  const floor = TOP + tall * map.gamma.length;
  return (
    <>
      {map.C.map((C, column) =>
        column % every === 0 ? (
          <text
            key={C}
            class="v-tick"
            x={LEFT + side * (column + 0.5)}
            y={floor + 16}
            text-anchor="middle"
          >
            {short(C)}
          </text>
        ) : null,
      )}
      {map.gamma.map((gamma, row) => (
        <text
          key={gamma}
          class="v-tick"
          x={LEFT - 6}
          y={TOP + tall * (map.gamma.length - 1 - row + 0.5) + 4}
          text-anchor="end"
        >
          {short(gamma)}
        </text>
      ))}
      <text
        class="v-axis-title"
        x={LEFT + (side * map.C.length) / 2}
        y={height - 8}
        text-anchor="middle"
      >
        C: what a mistake costs
      </text>
      <text class="v-axis-title" x={LEFT - 6} y={13} text-anchor="end">
        gamma
      </text>
    </>
  );
}

/** Room is scarce along the axes. */
function short(value: number): string {
  const isFar = value >= 10_000 || value < 0.001;
  return isFar ? value.toExponential(0).replace("+", "") : readable(value, 2);
}

function HeatLegend(props: { low: number; high: number }) {
  return (
    <ul class="v-legend">
      <li>
        <span class="v-number">{percent(props.low)}</span>
        <svg class="v-key" width="90" height="12" aria-hidden="true">
          {Array.from({ length: 9 }, (_, k) => (
            <rect
              key={k}
              class="heat-fill"
              x={10 * k}
              width={10}
              height={12}
              fill-opacity={strength((k / 8) ** 3)}
            />
          ))}
        </svg>
        <span class="v-number">{percent(props.high)}</span>
      </li>
      <li>
        <svg class="v-key" width="16" height="14" aria-hidden="true">
          <path class="heat-star" d={star(8, 7, 6)} />
        </svg>
        best
      </li>
    </ul>
  );
}

function HeatTable(props: { map: TuningMap; cells: Cell[][] }) {
  return (
    <div class="v-table-box" tabIndex={0} role="region" aria-label="Accuracy as a table">
      <table class="v-table">
        <caption>Accuracy for each C (columns) and gamma (rows)</caption>
        <thead>
          <tr>
            <th scope="col">gamma</th>
            {props.map.C.map((C) => (
              <th key={C} scope="col" class="v-number">{`C = ${readable(C, 2)}`}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.cells.map((row, r) => (
            <tr key={props.map.gamma[r]}>
              <th scope="row">{readable(props.map.gamma[r], 2)}</th>
              {row.map((cell) => (
                <td key={cell.C} class="v-number">
                  {percent(cell.score)}
                  {cell.isBest ? " (best)" : ""}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function spokenCell(cell: Cell): string {
  const best = cell.isBest ? ", the best" : "";
  return `C = ${readable(cell.C, 3)}, gamma = ${readable(cell.gamma, 3)}: accuracy ${(100 * cell.score).toFixed(1)} %${best}`;
}

function star(x: number, y: number, r: number): string {
  const corners = Array.from({ length: 10 }, (_, k) => {
    const angle = -Math.PI / 2 + (k * Math.PI) / 5;
    const reach = k % 2 === 0 ? r : 0.45 * r;
    return `${(x + reach * Math.cos(angle)).toFixed(1)} ${(y + reach * Math.sin(angle)).toFixed(1)}`;
  });
  return `M${corners.join("L")}Z`;
}
