/** Where data lie on the picture. */

import type { Scene, View } from "../protocol";

export interface Frame {
  /** Of the whole picture, in CSS pixels. */
  width: number;
  height: number;
  /** Of the plot within it. */
  left: number;
  top: number;
  right: number;
  bottom: number;
  view: View;
}

const ROOM = { left: 48, top: 12, right: 14, bottom: 42 };
const COMPACT_ROOM = { left: 32, top: 8, right: 8, bottom: 22 };

/** `zoom` is that of the letters beside the axes. */
export function frameOf(
  width: number,
  height: number,
  view: View,
  isCompact: boolean,
  zoom = 1,
): Frame {
  const room = isCompact ? COMPACT_ROOM : ROOM;
  return {
    width,
    height,
    left: Math.round(room.left * zoom),
    top: room.top,
    right: width - room.right,
    bottom: height - Math.round(room.bottom * zoom),
    view,
  };
}

export function xPixel(frame: Frame, value: number): number {
  const [low, high] = frame.view.x;
  return frame.left + ((value - low) / (high - low)) * (frame.right - frame.left);
}

export function yPixel(frame: Frame, value: number): number {
  const [low, high] = frame.view.y;
  return frame.bottom - ((value - low) / (high - low)) * (frame.bottom - frame.top);
}

/** The place under a pixel, kept within the view. */
export function placeAt(frame: Frame, x: number, y: number): [number, number] {
  const share = (value: number, low: number, high: number) =>
    Math.min(1, Math.max(0, (value - low) / (high - low)));
  const across = share(x, frame.left, frame.right);
  const up = share(frame.bottom - y, 0, frame.bottom - frame.top);
  const { view } = frame;
  return [view.x[0] + across * (view.x[1] - view.x[0]), view.y[0] + up * (view.y[1] - view.y[0])];
}

export function isInside(frame: Frame, x: number, y: number): boolean {
  return x >= frame.left && x <= frame.right && y >= frame.top && y <= frame.bottom;
}

/** Where a point of a scene is: its second coordinate is the value itself for regression. */
export function pointPlace(scene: Scene, index: number): [number, number] {
  const own = scene.x[index] ?? [];
  const second = scene.task === "regression" ? scene.y[index] : own[1];
  return [own[0] ?? 0, second ?? 0];
}

/** The nearest point within `reach` pixels, or -1. Later points lie on top, so they win ties. */
export function pointAt(frame: Frame, scene: Scene, x: number, y: number, reach: number): number {
  let found = -1;
  let nearest = reach * reach;
  for (let index = 0; index < scene.x.length; index++) {
    const [a, b] = pointPlace(scene, index);
    const distance = (xPixel(frame, a) - x) ** 2 + (yPixel(frame, b) - y) ** 2;
    if (distance <= nearest) {
      nearest = distance;
      found = index;
    }
  }
  return found;
}
