import type { Impurity } from "../protocol";
import { Axes, type Frame, pathThrough } from "./Axes";
import { linearScale, readable } from "./numbers";
import { useWidth } from "./useWidth";

/** Impurities over the share of one of two classes, and their values where the slider is. */
export function ImpurityChart(props: {
  impurity: Impurity;
  share: number;
  onShare: (share: number) => void;
}) {
  const { ref, width: room, zoom } = useWidth<HTMLDivElement>(520);
  const { impurity, share } = props;
  const width = Math.min(room, 720);
  const height = Math.max(230, Math.min(340, 0.56 * width));
  const frame: Frame = { width, height, left: 44, right: 14, top: 14, bottom: 40 };
  const floor = height - frame.bottom;
  const x = linearScale([0, 1], [frame.left, width - frame.right], 5);
  const top = Math.max(...impurity.curves.flatMap((own) => Array.from(own.values)), 0.1);
  const y = linearScale([0, 1.05 * top], [floor, frame.top], 4);
  const told = impurity.curves.map((own) => `${own.name} ${readable(own.at)}`).join(", ");
  return (
    <figure class="v-figure" data-testid="impurity-chart">
      <figcaption>Impurity of a node with two classes</figcaption>
      <ul class="v-legend">
        {impurity.curves.map((own, k) => (
          <li key={own.name}>
            <svg class="v-key" width="26" height="10" aria-hidden="true">
              <path class={`v-line c${k % 7} d${k % 4}`} d="M1 5L25 5" />
            </svg>
            <span>{own.name}</span>
            <b class="v-number">{readable(own.at)}</b>
          </li>
        ))}
      </ul>
      <div ref={ref} class="v-fit">
        <svg
          class="v-chart"
          width={width * zoom}
          height={height * zoom}
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={`Impurity at a share of ${readable(share, 2)}: ${told}.`}
        >
          <Axes frame={frame} x={x} y={y} xTitle="share of the first class">
            {impurity.curves.map((own, k) => (
              <path
                key={own.name}
                class={`v-line c${k % 7} d${k % 4}`}
                d={pathThrough(
                  Array.from(
                    impurity.shares,
                    (p, i) => [x.place(p), y.place(own.values[i] ?? Number.NaN)] as const,
                  ),
                )}
              />
            ))}
            <line
              class="v-cursor"
              x1={x.place(share)}
              x2={x.place(share)}
              y1={frame.top}
              y2={floor}
            />
            {impurity.curves.map((own, k) => (
              <circle
                key={own.name}
                class={`v-dot c${k % 7}`}
                cx={x.place(share)}
                cy={y.place(own.at)}
                r={5}
              />
            ))}
          </Axes>
        </svg>
      </div>
      <label class="v-field">
        <span>
          share of the first class <b class="v-number">{readable(share, 2)}</b>
        </span>
        <input
          type="range"
          min="0"
          max="1"
          step="0.01"
          value={share}
          data-testid="impurity-share"
          onInput={(event) => props.onShare(Number(event.currentTarget.value))}
        />
      </label>
      <ClassDots share={share} />
    </figure>
  );
}

/** Twenty rows of the node, so that a share is something to see. */
function ClassDots(props: { share: number }) {
  const first = Math.round(20 * props.share);
  return (
    <svg class="impurity-dots" viewBox="0 0 400 22" aria-hidden="true">
      {Array.from({ length: 20 }, (_, k) => {
        const x = 10 + 20 * k;
        return k < first ? (
          <circle key={k} class="v-bar c0" cx={x} cy={11} r={7} />
        ) : (
          <rect key={k} class="v-bar c1" x={x - 6} y={5} width={12} height={12} />
        );
      })}
    </svg>
  );
}
