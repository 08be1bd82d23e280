import type { ComponentChildren } from "preact";
import { readable, type Scale } from "./numbers";

export interface Frame {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Grid lines, numbers and titles of two axes; what is drawn between them are the children. */
export function Axes(props: {
  frame: Frame;
  x: Scale;
  y: Scale;
  xTitle: string;
  yTitle?: string;
  format?: (value: number) => string;
  xFormat?: (value: number) => string;
  children?: ComponentChildren;
}) {
  const { frame, x, y } = props;
  const format = props.format ?? ((value: number) => readable(value, 3));
  const xFormat = props.xFormat ?? ((value: number) => readable(value, 3));
  const floor = frame.height - frame.bottom;
  return (
    <>
      {y.ticks.map((tick) => (
        <g key={`y${tick}`}>
          <line
            class="v-grid"
            x1={frame.left}
            x2={frame.width - frame.right}
            y1={y.place(tick)}
            y2={y.place(tick)}
          />
          <text class="v-tick" x={frame.left - 6} y={y.place(tick) + 4} text-anchor="end">
            {format(tick)}
          </text>
        </g>
      ))}
      {x.ticks.map((tick) => (
        <g key={`x${tick}`}>
          <line class="v-axis" x1={x.place(tick)} x2={x.place(tick)} y1={floor} y2={floor + 4} />
          <text class="v-tick" x={x.place(tick)} y={floor + 17} text-anchor="middle">
            {xFormat(tick)}
          </text>
        </g>
      ))}
      <line class="v-axis" x1={frame.left} x2={frame.width - frame.right} y1={floor} y2={floor} />
      <text
        class="v-axis-title"
        x={(frame.left + frame.width - frame.right) / 2}
        y={frame.height - 4}
        text-anchor="middle"
      >
        {props.xTitle}
      </text>
      {props.yTitle && (
        <text class="v-axis-title" x={4} y={12}>
          {props.yTitle}
        </text>
      )}
      {props.children}
    </>
  );
}

/** An SVG path through points; a gap where one of them is not finite. */
export function pathThrough(points: Iterable<readonly [number, number]>): string {
  const parts: string[] = [];
  let isOn = false;
  for (const [x, y] of points) {
    if (!Number.isFinite(x) || !Number.isFinite(y)) {
      isOn = false;
      continue;
    }
    parts.push(`${isOn ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`);
    isOn = true;
  }
  return parts.join("");
}
