import type { Bootstrap } from "../protocol";
import { Axes, type Frame } from "./Axes";
import { linearScale, readable } from "./numbers";
import { useWidth } from "./useWidth";

/** The statistic in many resamples: a histogram, the interval and the estimate. */
export function BootstrapChart(props: { bootstrap: Bootstrap; statistic: string }) {
  const { ref, width: room, zoom } = useWidth<HTMLDivElement>(520);
  const { bootstrap } = props;
  const width = Math.min(room, 720);
  const height = Math.max(220, Math.min(320, 0.5 * width));
  const frame: Frame = { width, height, left: 48, right: 14, top: 26, bottom: 40 };
  const floor = height - frame.bottom;
  const { edges, counts } = bootstrap;
  const x = linearScale(
    [
      Math.min(edges[0] ?? 0, bootstrap.low),
      Math.max(edges[edges.length - 1] ?? 1, bootstrap.high),
    ],
    [frame.left, width - frame.right],
    width < 420 ? 4 : 6,
  );
  const y = linearScale([0, 1.05 * (Math.max(...counts) || 1)], [floor, frame.top], 4);
  const label =
    `Histogram of the ${props.statistic} over resamples: estimate ${readable(bootstrap.estimate)}, ` +
    `95 % interval from ${readable(bootstrap.low)} to ${readable(bootstrap.high)}, ` +
    `standard error ${readable(bootstrap.standardError)}.`;
  return (
    <figure class="v-figure" data-testid="bootstrap-chart">
      <figcaption>{`The ${props.statistic} in the resamples`}</figcaption>
      <div ref={ref} class="v-fit">
        <svg
          class="v-chart"
          width={width * zoom}
          height={height * zoom}
          viewBox={`0 0 ${width} ${height}`}
          role="img"
          aria-label={label}
        >
          <Axes frame={frame} x={x} y={y} xTitle={props.statistic} yTitle="resamples">
            <rect
              class="v-band c0"
              x={x.place(bootstrap.low)}
              y={frame.top}
              width={Math.max(1, x.place(bootstrap.high) - x.place(bootstrap.low))}
              height={floor - frame.top}
            />
            {Array.from(counts, (count, k) => {
              const left = x.place(edges[k] ?? 0);
              const right = x.place(edges[k + 1] ?? 0);
              return (
                <rect
                  key={`${edges[k]}`}
                  class="v-bar c0"
                  x={left + 0.5}
                  y={y.place(count)}
                  width={Math.max(0.5, right - left - 1)}
                  height={Math.max(0, floor - y.place(count))}
                />
              );
            })}
            {[bootstrap.low, bootstrap.high].map((own, k) => (
              <line
                key={k === 0 ? "low" : "high"}
                class="boot-end"
                x1={x.place(own)}
                x2={x.place(own)}
                y1={frame.top}
                y2={floor}
              />
            ))}
            <line
              class="boot-estimate"
              x1={x.place(bootstrap.estimate)}
              x2={x.place(bootstrap.estimate)}
              y1={frame.top}
              y2={floor}
            />
          </Axes>
        </svg>
      </div>
      <dl class="v-cards">
        <Card name={`${props.statistic} of the values`} value={readable(bootstrap.estimate)} />
        <Card
          name="95 % interval"
          value={`${readable(bootstrap.low)} to ${readable(bootstrap.high)}`}
        />
        <Card name="standard error" value={readable(bootstrap.standardError)} />
      </dl>
    </figure>
  );
}

function Card(props: { name: string; value: string }) {
  return (
    <div class="v-card">
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  );
}
