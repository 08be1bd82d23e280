import { describe, expect, it } from "vitest";
import type { Layout, Placed } from "./layout";
import { fitted, isInside, LARGEST, opened, seen, showing, zoomed } from "./viewport";

const wide = { left: -5000, right: 5000, height: 900 } as Layout;
const small = { left: -100, right: 100, height: 100 } as Layout;

describe("the viewport", () => {
  it("keeps the place under the pointer while it zooms", () => {
    const view = { k: 0.5, x: 30, y: -20 };
    const after = zoomed(view, 3, 200, 100);
    const world = (own: typeof view) => [(200 - own.x) / own.k, (100 - own.y) / own.k];
    expect(world(after)[0]).toBeCloseTo(world(view)[0]!);
    expect(world(after)[1]).toBeCloseTo(world(view)[1]!);
    expect(zoomed(view, 1e9, 0, 0).k).toBe(LARGEST);
  });

  it("fits all of the tree on the screen", () => {
    const view = fitted(wide, 800, 400);
    const part = seen(view, 800, 400, 0);
    expect(isInside({ left: -5000, right: 5000, top: 0, bottom: 900 }, part)).toBe(true);
    expect(fitted(small, 800, 400).k).toBeLessThanOrEqual(1.35);
  });

  it("opens a wide tree at a size that can be read, with the root in the middle", () => {
    const view = opened(wide, 800, 400);
    expect(view.k).toBeGreaterThanOrEqual(0.5);
    expect(view.x).toBe(400);
  });

  it("moves no further than needed to show a node", () => {
    const own = { x: 1000, y: 100, width: 60, height: 40 } as Placed;
    const view = showing(own, { k: 1, x: 0, y: 0 }, 800, 400);
    expect(view).toEqual({ k: 1, x: 800 - 16 - 1030, y: 0 });
    expect(showing(own, view, 800, 400)).toEqual(view);
  });
});
