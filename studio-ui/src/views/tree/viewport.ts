/** What part of a large picture is on the screen: places of the screen are k * world + (x, y). */
import type { Layout, Placed } from "./layout";

export interface Viewport {
  k: number;
  x: number;
  y: number;
}

export interface Rectangle {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export const SMALLEST = 0.005;
export const LARGEST = 4;
/** Letters of boxes can be read well at this scale, and just about at the smaller one. */
const LEGIBLE = 0.75;
const JUST_LEGIBLE = 0.66;
const MARGIN = 16;

/** The whole picture in the middle of the screen; small ones are not blown up. */
export function fitted(layout: Layout, width: number, height: number): Viewport {
  const wide = Math.max(1, layout.right - layout.left);
  const tall = Math.max(1, layout.height);
  const k = clampedScale(Math.min(1.35, (width - 2 * MARGIN) / wide, (height - 2 * MARGIN) / tall));
  return {
    k,
    x: width / 2 - (k * (layout.left + layout.right)) / 2,
    y: Math.max(MARGIN, (height - k * tall) / 2),
  };
}

/** Where a tree opens: whole where it can be read then, else from the root down. */
export function opened(layout: Layout, width: number, height: number, zoom = 1): Viewport {
  const whole = fitted(layout, width, height);
  if (whole.k >= JUST_LEGIBLE * zoom) return whole;
  const tall = Math.min(1, (height - 2 * MARGIN) / Math.max(1, layout.height));
  const k = Math.max(LEGIBLE * zoom, tall * 0.8, whole.k);
  return { k, x: width / 2, y: MARGIN };
}

/** Larger or smaller, while the place under (atX, atY) stays where it is. */
export function zoomed(view: Viewport, factor: number, atX: number, atY: number): Viewport {
  const k = clampedScale(view.k * factor);
  const ratio = k / view.k;
  return { k, x: atX - ratio * (atX - view.x), y: atY - ratio * (atY - view.y) };
}

function clampedScale(k: number): number {
  return Math.min(LARGEST, Math.max(SMALLEST, k));
}

/** The part of the world on the screen, and as much around it as `pad` screens. */
export function seen(view: Viewport, width: number, height: number, pad: number): Rectangle {
  return {
    left: (-view.x - pad * width) / view.k,
    right: (width * (1 + pad) - view.x) / view.k,
    top: (-view.y - pad * height) / view.k,
    bottom: (height * (1 + pad) - view.y) / view.k,
  };
}

export function isInside(inner: Rectangle, outer: Rectangle): boolean {
  return (
    inner.left >= outer.left &&
    inner.right <= outer.right &&
    inner.top >= outer.top &&
    inner.bottom <= outer.bottom
  );
}

export function isSeen(own: Placed, part: Rectangle): boolean {
  return (
    own.x + own.width / 2 >= part.left &&
    own.x - own.width / 2 <= part.right &&
    own.y + own.height >= part.top &&
    own.y <= part.bottom
  );
}

/** Moved no further than needed for a node to be on the screen. */
export function showing(own: Placed, view: Viewport, width: number, height: number): Viewport {
  const left = view.k * (own.x - own.width / 2) + view.x;
  const right = view.k * (own.x + own.width / 2) + view.x;
  const top = view.k * own.y + view.y;
  const bottom = view.k * (own.y + own.height) + view.y;
  let { x, y } = view;
  if (right > width - MARGIN) x -= right - width + MARGIN;
  if (left < MARGIN) x += MARGIN - left;
  if (bottom > height - MARGIN) y -= bottom - height + MARGIN;
  if (top < MARGIN) y += MARGIN - top;
  return { k: view.k, x, y };
}
