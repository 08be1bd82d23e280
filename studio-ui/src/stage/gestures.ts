/**
 * Pointer gestures on an editable stage: mouse, pen and touch alike.
 *
 * A press on a point drags it. A press elsewhere draws a point and goes on drawing while it moves, or
 * erases, as the tool says. Moves are gathered and applied once a frame.
 */

import type { Scene } from "../protocol";
import { addPoint, erasePoint, movePoint } from "./edits";
import { type Frame, isInside, placeAt, pointAt } from "./frame";
import type { StageTool } from "./tools";

const REACH = { mouse: 12, pen: 16, touch: 24 } as Record<string, number>;
/** Pixels between the points of a stroke. */
const STROKE_PAUSE = 22;

export interface GestureHost {
  frame(): Frame;
  scene(): Scene;
  tool(): { tool: StageTool; class: number };
  /** Changes with the same key are one step of undo. */
  edit(scene: Scene, key: string): void;
  settle(): void;
  hover(point: number, x: number, y: number): void;
  focusPoint(point: number): void;
}

export function reachOf(event: { pointerType: string }): number {
  return REACH[event.pointerType] ?? 12;
}

export class Gestures {
  private dragged = -1;
  private isDrawing = false;
  private isErasing = false;
  private key = "";
  private count = 0;
  private last: [number, number] = [0, 0];
  private pending: [number, number] | null = null;
  private ticket = 0;

  constructor(private readonly host: GestureHost) {}

  get isBusy(): boolean {
    return this.dragged >= 0 || this.isDrawing || this.isErasing;
  }

  /** Returns whether the press began a gesture. */
  press(x: number, y: number, reach: number, isSecondary: boolean): boolean {
    const { host } = this;
    const frame = host.frame();
    const point = pointAt(frame, host.scene(), x, y, reach);
    const { tool, class: own } = host.tool();
    this.key = `gesture-${++this.count}`;
    this.last = [x, y];
    if (tool === "erase" || isSecondary) {
      this.isErasing = true;
      this.eraseAt(x, y, reach);
      return true;
    }
    if (point >= 0) {
      this.dragged = point;
      host.focusPoint(point);
      return true;
    }
    if (tool === "draw" && isInside(frame, x, y)) {
      this.isDrawing = true;
      host.edit(addPoint(host.scene(), placeAt(frame, x, y), own), this.key);
      return true;
    }
    return false;
  }

  move(x: number, y: number, reach: number): void {
    if (!this.isBusy) {
      this.host.hover(pointAt(this.host.frame(), this.host.scene(), x, y, reach), x, y);
      return;
    }
    this.pending = [x, y];
    if (this.ticket === 0) this.ticket = requestAnimationFrame(() => this.apply(reach));
  }

  release(): void {
    if (this.pending) this.apply(REACH.mouse ?? 12);
    if (!this.isBusy) return;
    this.dragged = -1;
    this.isDrawing = false;
    this.isErasing = false;
    this.host.settle();
  }

  /** Draws a point where one is wished in any tool: a double click. */
  place(x: number, y: number): void {
    const { host } = this;
    const frame = host.frame();
    if (!isInside(frame, x, y)) return;
    const { class: own } = host.tool();
    host.edit(addPoint(host.scene(), placeAt(frame, x, y), own), `gesture-${++this.count}`);
    host.settle();
  }

  private apply(reach: number): void {
    if (this.ticket !== 0) cancelAnimationFrame(this.ticket);
    this.ticket = 0;
    const pending = this.pending;
    this.pending = null;
    if (!pending) return;
    const { host } = this;
    const [x, y] = pending;
    if (this.isErasing) {
      this.eraseAt(x, y, reach);
    } else if (this.dragged >= 0) {
      host.edit(movePoint(host.scene(), this.dragged, placeAt(host.frame(), x, y)), this.key);
      host.hover(this.dragged, x, y);
    } else if (this.isDrawing && this.isFar(x, y) && isInside(host.frame(), x, y)) {
      this.last = pending;
      const place = placeAt(host.frame(), x, y);
      host.edit(addPoint(host.scene(), place, host.tool().class), this.key);
    }
  }

  private eraseAt(x: number, y: number, reach: number): void {
    const { host } = this;
    const point = pointAt(host.frame(), host.scene(), x, y, reach);
    if (point >= 0) host.edit(erasePoint(host.scene(), point), this.key);
    host.hover(-1, x, y);
  }

  private isFar(x: number, y: number): boolean {
    return Math.hypot(x - this.last[0], y - this.last[1]) >= STROKE_PAUSE;
  }
}
