import { useLayoutEffect, useRef, useState } from "preact/hooks";

const AWAY = 16;

/** Facts beside the pointer, on the side where there is room. */
export function ReadoutBox(props: {
  lines: string[];
  x: number;
  y: number;
  width: number;
  height: number;
}) {
  const { x, y, width, height } = props;
  const box = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ left: x + AWAY, top: y + AWAY });
  useLayoutEffect(() => {
    const own = box.current;
    if (!own) return;
    const isRight = x + AWAY + own.offsetWidth > width;
    const isLow = y + AWAY + own.offsetHeight > height;
    const left = isRight ? x - own.offsetWidth - AWAY : x + AWAY;
    const top = isLow ? y - own.offsetHeight - AWAY : y + AWAY;
    setPlace({ left: Math.max(0, left), top: Math.max(0, top) });
  }, [x, y, width, height]);
  return (
    <div
      ref={box}
      class="readout"
      data-testid="readout"
      aria-hidden="true"
      style={{ left: `${place.left}px`, top: `${place.top}px` }}
    >
      {props.lines.map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}
