import type { Gains } from "../protocol";
import { Axes, type Frame, pathThrough } from "./Axes";
import { linearScale, rangeOf, readable, roomy } from "./numbers";
import { asked } from "./tree/nodeWords";
import { useWidth } from "./useWidth";

type Candidate = Gains["candidates"][number];

/** What each feature would gain at the node that is split: a table, and the gain of each threshold. */
export function GainsView(props: { gains: Gains }) {
  const { gains } = props;
  const most = Math.max(...gains.candidates.map((own) => own.gain), 0) || 1;
  const drawn = gains.candidates.filter((own) => (own.thresholds?.length ?? 0) > 1);
  return (
    <div class="gains" data-testid="gains">
      <div class="v-table-box" tabIndex={0} role="region" aria-label="Gains of the candidates">
        <table class="v-table">
          <caption>{`Candidates at node ${gains.node}, by ${gains.criterion}`}</caption>
          <thead>
            <tr>
              <th scope="col">question</th>
              <th scope="col" class="v-number">
                gain
              </th>
              <th scope="col">
                <span class="v-hidden">gain as a bar</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {gains.candidates.map((own) => (
              <tr key={own.question} class={own.isChosen ? "is-chosen" : ""}>
                <th scope="row">
                  {asked(own.question)}
                  {own.isChosen && <span class="gains-chosen">chosen</span>}
                </th>
                <td class="v-number">{readable(own.gain)}</td>
                <td class="gains-bar-cell">
                  <svg
                    class="gains-bar"
                    viewBox="0 0 100 10"
                    preserveAspectRatio="none"
                    aria-hidden="true"
                  >
                    <rect
                      class={own.isChosen ? "v-bar c5" : "v-bar c0"}
                      width={Math.max(0, (100 * own.gain) / most)}
                      height="10"
                    />
                  </svg>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {drawn.map((own) => (
        <GainCurve key={own.feature} candidate={own} criterion={gains.criterion} most={most} />
      ))}
    </div>
  );
}

function GainCurve(props: { candidate: Candidate; criterion: string; most: number }) {
  const { ref, width, zoom } = useWidth<HTMLDivElement>(320);
  const { candidate } = props;
  const thresholds = candidate.thresholds ?? new Float32Array();
  const values = candidate.gains ?? new Float32Array();
  const height = 150;
  const frame: Frame = { width, height, left: 50, right: 12, top: 20, bottom: 38 };
  const floor = height - frame.bottom;
  const x = linearScale(roomy(rangeOf(thresholds), 0.03), [frame.left, width - frame.right], 5);
  const top = Math.max(props.most, ...values);
  const y = linearScale([0, top * 1.08], [floor, frame.top], 3);
  const best = indexOfLargest(values);
  const place = [x.place(thresholds[best] ?? 0), y.place(values[best] ?? 0)] as const;
  const label = `Gain against the threshold of ${candidate.feature}: highest, ${readable(values[best])}, at ${readable(thresholds[best])}.`;
  return (
    <figure class="v-figure" data-testid="gain-curve">
      <figcaption>{`Gain against the threshold of ${candidate.feature}`}</figcaption>
      <div ref={ref} class="v-fit">
        <svg
          class="v-chart"
          width={width * zoom}
          height={height * zoom}
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={label}
        >
          <Axes frame={frame} x={x} y={y} xTitle={candidate.feature} yTitle="gain">
            <path
              class={candidate.isChosen ? "v-line c5" : "v-line c0"}
              d={pathThrough(
                Array.from(
                  thresholds,
                  (own, k) => [x.place(own), y.place(values[k] ?? Number.NaN)] as const,
                ),
              )}
            />
            <line class="v-cursor" x1={place[0]} x2={place[0]} y1={floor} y2={place[1]} />
            <circle
              class={candidate.isChosen ? "v-dot c5" : "v-dot c0"}
              cx={place[0]}
              cy={place[1]}
              r={5}
            />
            <text
              class="v-value"
              x={Math.min(width - 70, Math.max(frame.left + 40, place[0]))}
              y={Math.max(14, place[1] - 9)}
              text-anchor="middle"
            >
              {`${readable(values[best], 3)} at ${readable(thresholds[best], 3)}`}
            </text>
          </Axes>
        </svg>
      </div>
    </figure>
  );
}

export function indexOfLargest(values: ArrayLike<number>): number {
  let best = 0;
  for (let k = 1; k < values.length; k += 1) {
    if ((values[k] ?? Number.NEGATIVE_INFINITY) > (values[best] ?? Number.NEGATIVE_INFINITY))
      best = k;
  }
  return best;
}
