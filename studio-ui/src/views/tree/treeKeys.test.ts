import { describe, expect, it, vi } from "vitest";
import type { TreeNode } from "../../protocol";
import { childrenOf, layoutOf } from "./layout";
import { keyed } from "./treeKeys";

const nodes: TreeNode[] = [-1, 0, 0, 1, 1].map((parent, id) => ({
  id,
  parent,
  branch: "",
  question: "",
  answer: "",
  rows: 1,
  impurity: 0,
  shares: [],
}));

function pressed(key: string, focused: number, collapsed: number[] = [], shiftKey = false) {
  const layout = layoutOf(nodes, childrenOf(nodes), new Set(collapsed), () => [10, 10]);
  const actions = { focus: vi.fn(), toggle: vi.fn(), zoom: vi.fn(), pan: vi.fn(), fit: vi.fn() };
  const event = { key, shiftKey, ctrlKey: false, metaKey: false, altKey: false } as KeyboardEvent;
  const isDone = keyed(event, layout, focused, actions);
  const focusedNow = actions.focus.mock.calls[0]?.[0].node.id;
  const toggled = actions.toggle.mock.calls[0]?.[0].node.id;
  return { isDone, focusedNow, toggled, actions };
}

describe("keys of a tree", () => {
  it("walk in preorder", () => {
    expect(pressed("ArrowDown", 1).focusedNow).toBe(3);
    expect(pressed("ArrowUp", 3).focusedNow).toBe(1);
    expect(pressed("End", 0).focusedNow).toBe(2);
    expect(pressed("Home", 4).focusedNow).toBe(0);
  });
  it("open, close and climb", () => {
    expect(pressed("ArrowRight", 1, [1]).toggled).toBe(1);
    expect(pressed("ArrowRight", 1).focusedNow).toBe(3);
    expect(pressed("ArrowLeft", 1).toggled).toBe(1);
    expect(pressed("ArrowLeft", 4).focusedNow).toBe(1);
    expect(pressed("Enter", 1).toggled).toBe(1);
  });
  it("zoom and pan", () => {
    expect(pressed("+", 0).actions.zoom).toHaveBeenCalled();
    expect(pressed("0", 0).actions.fit).toHaveBeenCalled();
    expect(pressed("ArrowLeft", 0, [], true).actions.pan).toHaveBeenCalledWith(60, 0);
  });
  it("leave other keys alone", () => {
    expect(pressed("Tab", 0).isDone).toBe(false);
  });
});
