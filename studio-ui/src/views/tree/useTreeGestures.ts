import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { type Layout, nodeAt, type Placed } from "./layout";
import { type Viewport, zoomed } from "./viewport";

interface Handlers {
  onView: (view: Viewport) => void;
  onHover: (own: Placed | null) => void;
  onClick: (own: Placed) => void;
  /** Where the wheel scrolls the page, and zooms with Ctrl only; pinching a touchpad says Ctrl. */
  isPassedBy: boolean;
}

const A_CLICK = 5; // pixels that a click may move

/** Wheel and pinch zoom, a drag pans, a click is a click; nodes are found by their place. */
export function useTreeGestures(
  svg: RefObject<SVGSVGElement>,
  current: { current: { view: Viewport; layout: Layout } },
  handlers: Handlers,
): void {
  const latest = useRef(handlers);
  latest.current = handlers;
  useEffect(() => {
    const element = svg.current;
    if (!element) return;
    return attached(element, current, latest);
  }, [svg, current]);
}

function attached(
  element: SVGSVGElement,
  current: { current: { view: Viewport; layout: Layout } },
  latest: { current: Handlers },
): () => void {
  const pointers = new Map<number, [number, number]>();
  let travelled = 0;
  const place = (event: MouseEvent): [number, number] => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const nodeUnder = ([x, y]: [number, number]) => {
    const { view, layout } = current.current;
    return nodeAt(layout, (x - view.x) / view.k, (y - view.y) / view.k, 2 / view.k);
  };
  const show = (view: Viewport) => {
    current.current = { ...current.current, view };
    latest.current.onView(view);
  };
  const onWheel = (event: WheelEvent) => {
    if (latest.current.isPassedBy && !event.ctrlKey) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const factor = Math.exp(-Math.max(-60, Math.min(60, event.deltaY * lines)) * 0.006);
    show(zoomed(current.current.view, factor, ...place(event)));
  };
  const onDown = (event: PointerEvent) => {
    if (event.button !== 0) return;
    element.setPointerCapture?.(event.pointerId);
    if (pointers.size === 0) travelled = 0;
    pointers.set(event.pointerId, place(event));
  };
  const onMove = (event: PointerEvent) => {
    const now = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      const found = nodeUnder(now);
      element.classList.toggle("is-over-node", found !== null);
      latest.current.onHover(found);
      return;
    }
    const { view } = current.current;
    if (pointers.size === 1) {
      travelled += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
      if (travelled > A_CLICK) {
        show({ ...view, x: view.x + now[0] - before[0], y: view.y + now[1] - before[1] });
      }
    } else {
      travelled = Number.POSITIVE_INFINITY;
      show(pinched(view, pointers, event.pointerId, now));
    }
    pointers.set(event.pointerId, now);
  };
  const onUp = (event: PointerEvent) => {
    const isClick = pointers.size === 1 && travelled <= A_CLICK && event.type === "pointerup";
    if (!pointers.delete(event.pointerId) || !isClick) return;
    const found = nodeUnder(place(event));
    if (found) latest.current.onClick(found);
  };
  const onLeave = () => latest.current.onHover(null);
  element.addEventListener("wheel", onWheel, { passive: false });
  element.addEventListener("pointerdown", onDown);
  element.addEventListener("pointermove", onMove);
  element.addEventListener("pointerup", onUp);
  element.addEventListener("pointercancel", onUp);
  element.addEventListener("pointerleave", onLeave);
  return () => {
    element.removeEventListener("wheel", onWheel);
    element.removeEventListener("pointerdown", onDown);
    element.removeEventListener("pointermove", onMove);
    element.removeEventListener("pointerup", onUp);
    element.removeEventListener("pointercancel", onUp);
    element.removeEventListener("pointerleave", onLeave);
  };
}

/** Two fingers: the distance zooms, their middle pans. */
function pinched(
  view: Viewport,
  pointers: Map<number, [number, number]>,
  moved: number,
  now: [number, number],
): Viewport {
  const before = pointers.get(moved);
  const other = [...pointers].find(([id]) => id !== moved)?.[1];
  if (!before || !other) return view;
  const distance = (a: [number, number]) => Math.hypot(a[0] - other[0], a[1] - other[1]) || 1;
  const factor = distance(now) / distance(before);
  const middle = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2] as const;
  const zoomedView = zoomed(view, factor, middle[0], middle[1]);
  return {
    ...zoomedView,
    x: zoomedView.x + (now[0] - before[0]) / 2,
    y: zoomedView.y + (now[1] - before[1]) / 2,
  };
}
