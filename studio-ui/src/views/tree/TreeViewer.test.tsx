import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, it } from "vitest";
import type { Tree, TreeNode } from "../../protocol";
import { TreeViewer } from "./TreeViewer";

const root = document.createElement("div");
document.body.append(root);
afterEach(() => render(null, root));

function binary(count: number): Tree {
  const nodes = Array.from({ length: count }, (_, id): TreeNode => {
    const isLeaf = 2 * id + 1 >= count;
    return {
      id,
      parent: id === 0 ? -1 : (id - 1) >> 1,
      branch: id === 0 ? "" : id % 2 === 1 ? "yes" : "no",
      question: isLeaf ? "" : `x${id} <= 0.5`,
      answer: id % 2 === 1 ? "A" : "B",
      rows: count - id,
      impurity: 0.25,
      shares: [0.75, 0.25],
    };
  });
  return { members: 1, member: 0, classes: ["A", "B"], nodes, table: null };
}

function shown(tree: Tree, path?: number[]) {
  act(() => render(<TreeViewer tree={tree} path={path} />, root));
}

const items = () => [...root.querySelectorAll("[role=treeitem]")];
const item = (id: number) => root.querySelector(`[data-node="${id}"]`);

function press(key: string) {
  act(() => {
    const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
    root.querySelector("[role=tree]")?.dispatchEvent(event);
  });
}

it("says of each node what it asks or answers, its level and whether it is open", () => {
  shown(binary(7));
  expect(items()).toHaveLength(7);
  expect(item(0)?.getAttribute("aria-expanded")).toBe("true");
  expect(item(1)?.getAttribute("aria-label")).toBe(
    "yes: asks x1 ≤ 0.5, 6 rows; impurity 0.25; A 75 %, B 25 %",
  );
  expect(item(3)?.getAttribute("aria-level")).toBe("3");
  expect(item(3)?.hasAttribute("aria-expanded")).toBe(false);
});

it("says nothing of an impurity that the tree does not keep", () => {
  const tree = binary(3);
  for (const node of tree.nodes) node.impurity = null;
  shown(tree);
  expect(item(1)?.getAttribute("aria-label")).toBe("yes: answers A, 2 rows; A 75 %, B 25 %");
  expect(root.textContent).not.toContain("impurity");
});

it("tells how much of the tree there is, and what to do when it is not all in sight", () => {
  shown(binary(1));
  expect(root.querySelector(".tree-count")?.textContent).toBe("1 node");
  expect(root.querySelector("[data-testid=tree-hint]")).toBeNull();
  shown(binary(2047));
  expect(root.querySelector(".tree-count")?.textContent).toBe("2,047 nodes, 15 unfolded");
  expect(root.querySelector("[data-testid=tree-hint]")?.textContent).toContain("unfolds");
});

it("folds and unfolds with the keyboard, and the focused node stays known", () => {
  shown(binary(7));
  press("ArrowDown");
  press("Enter");
  expect(items()).toHaveLength(5);
  expect(item(1)?.getAttribute("aria-expanded")).toBe("false");
  const active = root.querySelector("[role=tree]")?.getAttribute("aria-activedescendant");
  expect(document.getElementById(active ?? "")?.getAttribute("data-node")).toBe("1");
  press("ArrowRight");
  expect(items()).toHaveLength(7);
});

it("tells rows, impurity and shares of the node that has the focus", () => {
  shown(binary(7));
  press("End");
  const told = root.querySelector("[data-testid=node-told]")?.textContent ?? "";
  expect(told).toContain("node 6");
  expect(told).toContain("answers B");
  expect(told).toContain("75 %");
});

it("opens a large tree folded, and draws it as a few patches when it is all seen", () => {
  shown(binary(2047));
  expect(items().length).toBeLessThanOrEqual(80);
  act(() => root.querySelector<HTMLButtonElement>("[data-testid=tree-fold]")?.click());
  act(() => root.querySelector<HTMLButtonElement>("[data-testid=tree-fit]")?.click());
  expect(root.querySelectorAll("[role=tree] *").length).toBeLessThan(60);
});

it("shows the way of a followed row, however deep", () => {
  const path = [0, 2, 6, 14, 30, 62, 126, 254, 510, 1022, 2046];
  shown(binary(2047), path);
  for (const id of [0, 2, 6, 14]) expect(item(id)?.getAttribute("class")).toContain("is-followed");
  expect(root.querySelector(".tree-edge.is-followed")).not.toBeNull();
});

it("survives a tree of one leaf and texts that look like markup", () => {
  const tree = binary(1);
  tree.nodes[0]!.answer = "<img src=x onerror=alert(1)>";
  shown(tree);
  expect(items()).toHaveLength(1);
  expect(root.querySelector("img")).toBeNull();
});
