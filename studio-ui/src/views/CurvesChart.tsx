import { useState } from "preact/hooks";
import { Axes, type Frame, pathThrough } from "./Axes";
import { linearScale, logScale, rangeOf, readable, roomy, type Scale, wholeTicks } from "./numbers";
import { useWidth } from "./useWidth";

export interface NamedCurve {
  name: string;
  values: ArrayLike<number>;
}

/** Curves over the steps, with a cursor at the current one; a click or a drag goes there. */
export function CurvesChart(props: {
  title: string;
  curves: NamedCurve[];
  scale: "linear" | "log";
  cursor: number;
  onSeek?: (step: number) => void;
  height?: number;
}) {
  const { ref, width, zoom } = useWidth<HTMLDivElement>(480);
  const [scale, setScale] = useState(props.scale);
  const [isDragged, setIsDragged] = useState(false);
  const curves = props.curves.filter((curve) => curve.values.length > 0);
  const last = Math.max(1, ...curves.map((curve) => curve.values.length - 1));
  const height = props.height ?? 190;
  const frame: Frame = { width, height, left: 52, right: 12, top: 10, bottom: 36 };
  const x = linearScale([0, last], [frame.left, width - frame.right]);
  x.ticks = wholeTicks(0, last, width < 420 ? 4 : 7);
  const y = valueScale(curves, scale, frame);
  const seek = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const place = ((event.clientX - box.left) / (box.width || 1)) * width;
    props.onSeek?.(Math.min(last, Math.max(0, Math.round(x.value(place)))));
  };
  return (
    <figure class="v-figure curves" data-testid="curves-chart">
      <figcaption class="v-head">
        <span>{props.title}</span>
        <span class="v-switch" role="group" aria-label="Scale of the values">
          {(["linear", "log"] as const).map((own) => (
            <button
              key={own}
              type="button"
              class="v-chip"
              aria-pressed={scale === own}
              data-testid={`curves-${own}`}
              onClick={() => setScale(own)}
            >
              {own}
            </button>
          ))}
        </span>
      </figcaption>
      <CurveLegend curves={curves} cursor={props.cursor} />
      <div ref={ref} class="v-fit">
        <svg
          class={`v-chart${props.onSeek ? " is-seekable" : ""}`}
          width={width * zoom}
          height={height * zoom}
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={spoken(props.title, curves, props.cursor)}
          onPointerDown={(event) => {
            if (!props.onSeek) return;
            (event.currentTarget as Element).setPointerCapture?.(event.pointerId);
            setIsDragged(true);
            seek(event);
          }}
          onPointerMove={(event) => isDragged && seek(event)}
          onPointerUp={() => setIsDragged(false)}
          onPointerCancel={() => setIsDragged(false)}
        >
          <Axes frame={frame} x={x} y={y} xTitle="step">
            {curves.map((curve, k) => (
              <path
                key={curve.name}
                class={`v-line c${k % 7} d${k % 4}`}
                d={pathThrough(placesOf(curve.values, x, y, scale))}
              />
            ))}
            <line
              class="v-cursor"
              x1={x.place(props.cursor)}
              x2={x.place(props.cursor)}
              y1={frame.top}
              y2={height - frame.bottom}
            />
            {curves.map((curve, k) => {
              const value = curve.values[props.cursor] ?? Number.NaN;
              if (!isShown(value, scale)) return null;
              return (
                <circle
                  key={curve.name}
                  class={`v-dot c${k % 7}`}
                  cx={x.place(props.cursor)}
                  cy={y.place(value)}
                  r={4.5}
                />
              );
            })}
          </Axes>
        </svg>
      </div>
    </figure>
  );
}

function CurveLegend(props: { curves: NamedCurve[]; cursor: number }) {
  return (
    <ul class="v-legend">
      {props.curves.map((curve, k) => (
        <li key={curve.name}>
          <svg class="v-key" width="26" height="10" aria-hidden="true">
            <path class={`v-line c${k % 7} d${k % 4}`} d="M1 5L25 5" />
          </svg>
          <span>{curve.name}</span>
          <b class="v-number">{readable(curve.values[props.cursor])}</b>
        </li>
      ))}
    </ul>
  );
}

function isShown(value: number, scale: "linear" | "log"): boolean {
  return Number.isFinite(value) && (scale === "linear" || value > 0);
}

function valueScale(curves: NamedCurve[], scale: "linear" | "log", frame: Frame): Scale {
  const ends: [number, number] = [frame.height - frame.bottom, frame.top];
  const isUsed = (value: number) => isShown(value, scale);
  const values = function* () {
    for (const curve of curves) yield* Array.from(curve.values);
  };
  const [low, high] = rangeOf(values(), isUsed);
  if (scale === "linear") return linearScale(roomy([low, high]), ends, 4);
  const bottom = Math.max(low, Number.MIN_VALUE, high * 1e-16) || 0.1;
  return logScale([bottom / 1.2, Math.max(high, bottom) * 1.2], ends, 4);
}

/** Where the values are; a gap where one cannot be shown. */
function* placesOf(
  values: ArrayLike<number>,
  x: Scale,
  y: Scale,
  scale: "linear" | "log",
): Generator<[number, number]> {
  for (let k = 0; k < values.length; k += 1) {
    const value = values[k] ?? Number.NaN;
    yield [x.place(k), isShown(value, scale) ? y.place(value) : Number.NaN];
  }
}

function spoken(title: string, curves: NamedCurve[], cursor: number): string {
  const told = curves.map((curve) => `${curve.name} ${readable(curve.values[cursor])}`);
  return `${title}. At step ${cursor}: ${told.join(", ")}.`;
}
