import { describe, expect, it } from "vitest";
import type { TreeNode } from "../../protocol";
import {
  besidePath,
  childrenOf,
  closedAtFirst,
  GAP,
  type Layout,
  layoutOf,
  nodeAt,
  tidyPositions,
} from "./layout";
import cases from "./layoutCases.json";

const SIZE = (): [number, number] => [60, 40];

function node(id: number, parent: number): TreeNode {
  return { id, parent, branch: "", question: "", answer: "", rows: 1, impurity: 0, shares: [] };
}

/** A tree with parents drawn by a small generator: deterministic, and of any shape. */
function drawn(count: number, seed: number): TreeNode[] {
  let state = seed;
  const nodes = [node(0, -1)];
  for (let id = 1; id < count; id += 1) {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    nodes.push(node(id, state % id));
  }
  return nodes;
}

function laidOut(nodes: TreeNode[], collapsed = new Set<number>()): Layout {
  return layoutOf(nodes, childrenOf(nodes), collapsed, SIZE);
}

describe("the layout of a tree", () => {
  for (const seed of [1, 2, 3]) {
    it(`keeps nodes of a level apart and parents in the middle (${seed})`, () => {
      const nodes = drawn(300, seed);
      const layout = laidOut(nodes);
      expect(layout.placed).toHaveLength(300);
      for (const level of layout.levels) {
        for (let k = 1; k < level.length; k += 1) {
          const left = layout.placed[level[k - 1]!]!;
          const right = layout.placed[level[k]!]!;
          expect(right.x - left.x).toBeGreaterThanOrEqual(60 + GAP - 1e-6);
        }
      }
      for (const [parent, children] of childrenOf(nodes)) {
        const places = children.map((own) => layout.placed[layout.indexOf.get(own.id)!]!.x);
        const above = layout.placed[layout.indexOf.get(parent)!]!.x;
        expect(above).toBeCloseTo((Math.min(...places) + Math.max(...places)) / 2, 6);
      }
    });
  }

  it("puts nodes where the pictures of the library put them", () => {
    for (const { parents, widths, gap, x } of cases) {
      const found = tidyPositions(parents, widths, gap);
      for (const [k, expected] of x.entries()) expect(found[k]).toBeCloseTo(expected, 6);
    }
  });

  it("mirrors what is mirrored", () => {
    const one = tidyPositions([-1, 0, 1, 1, 0], [10, 10, 10, 10, 10], 2);
    const other = tidyPositions([-1, 0, 0, 2, 2], [10, 10, 10, 10, 10], 2);
    expect([...one].map((x) => -x || 0).sort()).toEqual([...other].map((x) => x || 0).sort());
  });

  it("handles a chain and a single node", () => {
    const chain = Array.from({ length: 5000 }, (_, k) => node(k, k - 1));
    expect(laidOut(chain).levels).toHaveLength(5000);
    expect(laidOut([node(0, -1)]).placed[0]!.x).toBe(0);
    expect(laidOut([]).placed).toEqual([]);
  });

  it("leaves out what is folded", () => {
    const nodes = [node(0, -1), node(1, 0), node(2, 0), node(3, 1), node(4, 1)];
    const layout = laidOut(nodes, new Set([1]));
    expect(layout.placed.map((own) => own.node.id)).toEqual([0, 1, 2]);
    expect(layout.placed[1]!.isCollapsed).toBe(true);
  });

  it("finds the node at a place", () => {
    const layout = laidOut(drawn(400, 7));
    for (const own of layout.placed) {
      expect(nodeAt(layout, own.x + 20, own.y + 10, 0)?.node.id).toBe(own.node.id);
    }
    expect(nodeAt(layout, 1e7, 10, 0)).toBeNull();
    expect(nodeAt(layout, 0, -50, 0)).toBeNull();
  });
});

describe("large trees", () => {
  it("open with as much as fits", () => {
    const nodes = Array.from({ length: 2047 }, (_, k) => node(k, k === 0 ? -1 : (k - 1) >> 1));
    const collapsed = closedAtFirst(nodes, childrenOf(nodes), 80);
    expect(laidOut(nodes, collapsed).placed).toHaveLength(63);
  });
  it("stay open where they are small", () => {
    const nodes = drawn(20, 1);
    expect(closedAtFirst(nodes, childrenOf(nodes), 80).size).toBe(0);
  });
  it("show a path with what leaves it folded", () => {
    const nodes = [
      node(0, -1),
      node(1, 0),
      node(2, 0),
      node(3, 1),
      node(4, 1),
      node(5, 2),
      node(6, 2),
    ];
    const path = new Set([0, 1, 4]);
    expect([...besidePath(nodes, childrenOf(nodes), path)]).toEqual([2]);
  });
});
