import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Scene } from "../protocol";
import { EMPTY_SCENE } from "../state/scene";
import { Stage } from "./Stage";

const SCENE: Scene = {
  ...EMPTY_SCENE,
  x: [
    [-1, 0],
    [1, 0],
  ],
  y: [0, 1],
};

let root: HTMLElement;
let edits: Scene[];

function show(scene: Scene, isEditable = true): HTMLElement {
  const onEdit = (next: Scene) => edits.push(next);
  act(() =>
    render(<Stage scene={scene} picture={null} editable={isEditable} onEdit={onEdit} />, root),
  );
  return root.querySelector('[data-testid="stage"]') as HTMLElement;
}

function press(stage: HTMLElement, key: string): KeyboardEvent {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
  act(() => {
    stage.dispatchEvent(event);
  });
  return event;
}

function said(): string {
  return root.querySelector('[data-testid="stage-said"]')?.textContent ?? "";
}

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
  edits = [];
});

afterEach(() => {
  act(() => render(null, root));
  root.remove();
});

describe("Stage", () => {
  it("reads the focused point out and edits it by keyboard", () => {
    const stage = show(SCENE);
    press(stage, "Enter");
    expect(said()).toContain("Point 1 of 2: class A (circle)");
    press(stage, "Tab");
    expect(said()).toContain("Point 2 of 2: class B (square)");
    press(stage, "ArrowLeft");
    expect(edits[0]?.x[1]?.[0]).toBeLessThan(1);
    press(stage, "Delete");
    expect(edits[1]?.x).toHaveLength(1);
  });

  it("catches nobody: Tab leaves at the last point and Escape at any", () => {
    const stage = show(SCENE);
    press(stage, "Enter");
    press(stage, "Tab");
    expect(press(stage, "Tab").defaultPrevented).toBe(false);
    press(stage, "Escape");
    expect(stage.dataset.focused).toBe("-1");
    expect(press(stage, "Tab").defaultPrevented).toBe(false);
  });

  it("edits nothing where it only shows", () => {
    const stage = show(SCENE, false);
    press(stage, "Enter");
    press(stage, "Delete");
    press(stage, "ArrowRight");
    expect(edits).toEqual([]);
    expect(said()).toContain("Point 2 of 2");
  });

  it("lets a point's focus go with the point", () => {
    const stage = show(SCENE);
    press(stage, "Enter");
    press(stage, "Tab");
    show({ ...SCENE, x: [[0, 0]], y: [0] });
    expect(stage.dataset.focused).toBe("-1");
  });
});
