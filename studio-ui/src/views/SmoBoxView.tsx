import type { SmoBox } from "../protocol";
import { Axes, type Frame } from "./Axes";
import { linearScale, readable } from "./numbers";
import { useWidth } from "./useWidth";

const ROOM = 0.22; // around the box, of its sides
const TOO_LARGE = 12; // a box this much larger than the multipliers would hide them

/** A pair step of SMO, points counted from 1 as in its sentence: the box, the line the pair may move on, and where the step ends. */
export function SmoBoxView(props: { box: SmoBox }) {
  const { ref, width: room, zoom } = useWidth<HTMLDivElement>(300);
  const { box } = props;
  const width = Math.min(room, 380);
  const limits = limitsOf(box);
  const frame: Frame = { width, height: 0, left: 46, right: 14, top: 22, bottom: 40 };
  const inner = width - frame.left - frame.right;
  const tall = (limits[1][1] - limits[1][0]) / (limits[0][1] - limits[0][0] || 1);
  frame.height = Math.min(420, Math.max(150, inner * tall)) + frame.top + frame.bottom;
  const x = linearScale(limits[0], [frame.left, width - frame.right], 4);
  const y = linearScale(limits[1], [frame.height - frame.bottom, frame.top], 4);
  const at = (point: readonly [number, number]) => [x.place(point[0]), y.place(point[1])] as const;
  const optimum = optimumOf(box);
  const isSeen = isClipped(box) && isWithin(optimum, limits);
  const [fromX, fromY] = at(alongLine(box, limits[1][0] - 1e3 * box.bounds[1]));
  const [toX, toY] = at(alongLine(box, limits[1][1] + 1e3 * box.bounds[1]));
  const ends = endsOf(box);
  return (
    <figure class="v-figure smo" data-testid="smo-box">
      <figcaption>{titleOf(box)}</figcaption>
      <div ref={ref} class="v-fit">
        <svg
          class="v-chart"
          width={width * zoom}
          height={frame.height * zoom}
          viewBox={`0 0 ${width} ${frame.height}`}
          role="img"
          aria-label={spokenBox(box)}
        >
          <defs>
            <clipPath id="smo-clip">
              <rect
                x={frame.left}
                y={frame.top}
                width={inner}
                height={frame.height - frame.top - frame.bottom}
              />
            </clipPath>
            <marker
              id="smo-head"
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="7"
              markerHeight="7"
              orient="auto"
            >
              <path class="smo-head" d="M0 0L8 4L0 8Z" />
            </marker>
          </defs>
          <Axes
            frame={frame}
            x={x}
            y={y}
            xTitle={`α₁, of point ${box.first + 1}`}
            yTitle={`α₂, of point ${box.second + 1}`}
          />
          <g clip-path="url(#smo-clip)">
            <rect
              class="smo-box"
              x={x.place(0)}
              y={y.place(box.bounds[1])}
              width={x.place(box.bounds[0]) - x.place(0)}
              height={y.place(0) - y.place(box.bounds[1])}
            />
            <line class="smo-line" x1={fromX} y1={fromY} x2={toX} y2={toY} />
            <line
              class="smo-segment"
              x1={at(ends[0])[0]}
              y1={at(ends[0])[1]}
              x2={at(ends[1])[0]}
              y2={at(ends[1])[1]}
            />
          </g>
          {ends.map((end, k) =>
            !isWithin(end, limits) ? null : (
              <g key={k === 0 ? "L" : "H"}>
                <rect class="smo-end" x={at(end)[0] - 4} y={at(end)[1] - 4} width={8} height={8} />
                <text
                  class="smo-name"
                  x={Math.min(at(end)[0] + 9, width - 62)}
                  y={at(end)[1] + (k === 0 ? 16 : -8)}
                >
                  {`${k === 0 ? "L" : "H"} = ${readable(k === 0 ? box.low : box.high, 3)}`}
                </text>
              </g>
            ),
          )}
          <line
            class="smo-move"
            marker-end="url(#smo-head)"
            x1={at(box.before)[0]}
            y1={at(box.before)[1]}
            x2={at(box.after)[0]}
            y2={at(box.after)[1]}
          />
          {isSeen && (
            <path class="smo-unclipped" d={cross(at(optimum))} data-testid="smo-unclipped" />
          )}
          <circle class="smo-before" cx={at(box.before)[0]} cy={at(box.before)[1]} r={6.5} />
          <circle class="smo-after" cx={at(box.after)[0]} cy={at(box.after)[1]} r={6.5} />
        </svg>
      </div>
      <ul class="v-legend" aria-hidden="true">
        <li>
          <Sign>
            <path class="smo-segment" d="M1 7L17 7" />
          </Sign>
          allowed
        </li>
        <li>
          <Sign>
            <circle class="smo-before" cx="9" cy="7" r="5.5" />
          </Sign>
          before
        </li>
        <li>
          <Sign>
            <circle class="smo-after" cx="9" cy="7" r="5.5" />
          </Sign>
          after
        </li>
        {isClipped(box) && (
          <li>
            <Sign>
              <path class="smo-unclipped" d={cross([9, 7])} />
            </Sign>
            {isSeen ? "optimum on the line" : "optimum, beyond the picture"}
          </li>
        )}
      </ul>
    </figure>
  );
}

function Sign(props: { children: preact.ComponentChildren }) {
  return (
    <svg class="v-key" width="18" height="14" aria-hidden="true">
      {props.children}
    </svg>
  );
}

export function isClipped(box: SmoBox): boolean {
  return !(box.low <= box.unclipped && box.unclipped <= box.high);
}

/** The point of the line y1 a1 + y2 a2 = k at this value of a2. */
export function alongLine(box: SmoBox, second: number): [number, number] {
  const slope = box.signs[0] * box.signs[1];
  return [box.before[0] - slope * (second - box.before[1]), second];
}

function optimumOf(box: SmoBox): [number, number] {
  return alongLine(box, box.unclipped);
}

/** L first: the lower end of the second multiplier. */
function endsOf(box: SmoBox): [[number, number], [number, number]] {
  const [one, other] = box.line;
  return one[1] <= other[1] ? [one, other] : [other, one];
}

/** Of the box and, unless it is far away, of the optimum; of a box that is far too large, the corner. */
export function limitsOf(box: SmoBox): [[number, number], [number, number]] {
  const optimum = optimumOf(box);
  const reach = Math.max(...box.before, ...box.after);
  const side = (k: 0 | 1): [number, number] => {
    const own = box.bounds[k];
    const isUsable = own > 0 && Number.isFinite(own) && (reach <= 0 || own <= TOO_LARGE * reach);
    const bound = isUsable ? own : 1.5 * reach || 1;
    const room = ROOM * bound;
    const isNear = -bound <= optimum[k] && optimum[k] <= 2 * bound;
    const low = isNear ? Math.min(-room, optimum[k] - room) : -room;
    const high = isNear ? Math.max(bound + room, optimum[k] + room) : bound + room;
    return [low, high];
  };
  return [side(0), side(1)];
}

function isWithin(point: [number, number], limits: [[number, number], [number, number]]): boolean {
  return limits.every(([low, high], k) => {
    const own = point[k as 0 | 1];
    return low <= own && own <= high;
  });
}

function cross([x, y]: readonly [number, number]): string {
  const r = 5;
  return `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}`;
}

function titleOf(box: SmoBox): string {
  const labels = box.signs[0] !== box.signs[1] ? "labels differ" : "labels are equal";
  return `The box of the pair: ${labels}, ${isClipped(box) ? "clipped" : "not clipped"}`;
}

function spokenBox(box: SmoBox): string {
  const [a, b] = box.before.map((own) => readable(own));
  const [c, d] = box.after.map((own) => readable(own));
  const clipped = isClipped(box) ? `, clipped from ${readable(box.unclipped)}` : "";
  return (
    `Multipliers of points ${box.first + 1} and ${box.second + 1} move from ${a} and ${b} to ${c} and ${d}` +
    `${clipped}; the second may be from ${readable(box.low)} to ${readable(box.high)}.`
  );
}
