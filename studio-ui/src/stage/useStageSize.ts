import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { projector } from "../looks/theme";
import type { Task } from "../protocol";

const SMALLEST = 220;
/** Room for the header, the tools and the legend around a stage. */
const ROOM_AROUND = 205;
const PROJECTOR_ROOM = 260;

/** As large as its column allows and the window can show: square, or wider for a curve. */
export function useStageSize(box: RefObject<HTMLElement>, task: Task, size?: number) {
  const around = projector.value ? PROJECTOR_ROOM : ROOM_AROUND;
  const [room, setRoom] = useState({ width: size ?? 560, height: window.innerHeight });
  useLayoutEffect(() => {
    const column = box.current?.parentElement;
    if (!column) return;
    const measure = () => {
      const width = Math.floor(column.clientWidth);
      const height = window.innerHeight;
      if (width <= 0) return;
      setRoom((old) => (old.width === width && old.height === height ? old : { width, height }));
    };
    measure();
    window.addEventListener("resize", measure);
    const observer = typeof ResizeObserver === "undefined" ? null : new ResizeObserver(measure);
    observer?.observe(column);
    return () => {
      window.removeEventListener("resize", measure);
      observer?.disconnect();
    };
  }, [box]);
  const most = size ?? Infinity;
  const width = Math.max(SMALLEST, Math.min(room.width, most));
  const tall = Math.max(SMALLEST, Math.min(width, room.height - around, most));
  return task === "classification"
    ? { width: tall < width ? Math.max(tall, Math.min(width, tall * 1.25)) : width, height: tall }
    : { width, height: Math.max(SMALLEST, Math.min(tall, Math.round(width * 0.72))) };
}
