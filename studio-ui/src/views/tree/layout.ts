/**
 * Where the nodes of a drawn tree are: tidily, close together, in time linear in their number.
 *
 * As in Reingold and Tilford (1981): the subtrees of children are pushed together until their
 * contours touch. Subtrees between two large ones would all lean to one side, so that is done once
 * from the left and once from the right, and the mean of both is taken.
 *
 * It is here, and not only in Python, because every fold changes the layout. Both give the same
 * positions: `layoutCases.json` is a test of each.
 */
import type { TreeNode } from "../../protocol";

export interface Placed {
  node: TreeNode;
  /** The middle of the box, and its top. */
  x: number;
  y: number;
  width: number;
  height: number;
  depth: number;
  isLeaf: boolean;
  isCollapsed: boolean;
  /** Among the children of its parent, from 1. */
  position: number;
  siblings: number;
  /** Index of the parent among the placed ones; -1 for the root. */
  above: number;
}

export interface Layout {
  /** In preorder. */
  placed: Placed[];
  /** Index among the placed ones by the node's number; none for hidden nodes. */
  indexOf: Map<number, number>;
  /** Indices of each depth, from left to right. */
  levels: number[][];
  left: number;
  right: number;
  height: number;
}

export const LEVEL = 84;
export const GAP = 14;

/** Children by the number of their parent. */
export function childrenOf(nodes: TreeNode[]): Map<number, TreeNode[]> {
  const children = new Map<number, TreeNode[]>();
  for (const node of nodes) {
    if (node.parent < 0) continue;
    const own = children.get(node.parent);
    if (own) own.push(node);
    else children.set(node.parent, [node]);
  }
  return children;
}

export function layoutOf(
  nodes: TreeNode[],
  children: Map<number, TreeNode[]>,
  collapsed: ReadonlySet<number>,
  sizeOf: (node: TreeNode, isLeaf: boolean) => [number, number],
): Layout {
  const placed = shownNodes(nodes, children, collapsed, sizeOf);
  const parents = placed.map((own) => own.above);
  const places = tidyPositions(
    parents,
    placed.map((own) => own.width),
    GAP,
  );
  const levels: number[][] = [];
  let left = 0;
  let right = 0;
  let height = 0;
  placed.forEach((own, k) => {
    own.x = places[k] ?? 0;
    own.y = own.depth * LEVEL;
    left = Math.min(left, own.x - own.width / 2);
    right = Math.max(right, own.x + own.width / 2);
    height = Math.max(height, own.y + own.height);
    levels[own.depth] ??= [];
    levels[own.depth]?.push(k);
  });
  const indexOf = new Map(placed.map((own, k) => [own.node.id, k]));
  return { placed, indexOf, levels, left, right, height };
}

function shownNodes(
  nodes: TreeNode[],
  children: Map<number, TreeNode[]>,
  collapsed: ReadonlySet<number>,
  sizeOf: (node: TreeNode, isLeaf: boolean) => [number, number],
): Placed[] {
  const placed: Placed[] = [];
  const root = nodes.find((node) => node.parent < 0);
  const waiting = root ? [{ node: root, depth: 0, position: 1, siblings: 1, above: -1 }] : [];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (!next) break;
    const below = children.get(next.node.id) ?? [];
    const [width, height] = sizeOf(next.node, below.length === 0);
    const isCollapsed = below.length > 0 && collapsed.has(next.node.id);
    const index = placed.length;
    placed.push({ ...next, x: 0, y: 0, width, height, isLeaf: below.length === 0, isCollapsed });
    if (isCollapsed) continue;
    for (let k = below.length - 1; k >= 0; k -= 1) {
      const node = below[k];
      if (!node) continue;
      waiting.push({
        node,
        depth: next.depth + 1,
        position: k + 1,
        siblings: below.length,
        above: index,
      });
    }
  }
  return placed;
}

/** Where the middles of nodes in preorder are from left to right; the root is at 0. */
export function tidyPositions(parents: number[], widths: number[], gap: number): Float64Array {
  const below: number[][] = parents.map(() => []);
  parents.forEach((above, node) => {
    if (above >= 0) below[above]?.push(node);
  });
  const fromLeft = pushedTogether(parents, below, widths, gap);
  const mirrored = below.map((own) => [...own].reverse());
  const fromRight = pushedTogether(parents, mirrored, widths, gap);
  return fromLeft.map((own, k) => 0.5 * (own - (fromRight[k] ?? 0)));
}

/**
 * How far a subtree reaches to one side, the lowest level first, less a common shift. Lowest first,
 * because levels are added on top; the shift, because a subtree moves as a whole. So merging two
 * contours takes no longer than the shorter one is.
 */
interface Contour {
  reach: number[];
  shift: number;
}

function pushedTogether(
  parents: number[],
  below: number[][],
  widths: number[],
  gap: number,
): Float64Array {
  const offset = new Float64Array(parents.length); // from the parent
  const left: Contour[] = [];
  const right: Contour[] = [];
  for (let node = parents.length - 1; node >= 0; node -= 1) {
    let outerLeft: Contour = { reach: [], shift: 0 };
    let outerRight: Contour = { reach: [], shift: 0 };
    const own = below[node] ?? [];
    for (const child of own) {
      const childLeft = left[child] as Contour;
      const childRight = right[child] as Contour;
      const push = leastDistance(outerRight, childLeft, gap);
      childLeft.shift += push;
      childRight.shift += push;
      outerLeft = covered(childLeft, outerLeft);
      outerRight = covered(outerRight, childRight);
      offset[child] = push;
    }
    const centre =
      own.length > 0
        ? 0.5 * ((offset[own[0] as number] ?? 0) + (offset[own[own.length - 1] as number] ?? 0))
        : 0;
    for (const child of own) offset[child] = (offset[child] ?? 0) - centre;
    const half = 0.5 * (widths[node] ?? 0);
    outerLeft.shift -= centre;
    outerLeft.reach.push(-half - outerLeft.shift);
    outerRight.shift -= centre;
    outerRight.reach.push(half - outerRight.shift);
    left[node] = outerLeft;
    right[node] = outerRight;
  }
  for (let node = 1; node < parents.length; node += 1) {
    offset[node] = (offset[node] ?? 0) + (offset[parents[node] ?? 0] ?? 0);
  }
  return offset;
}

/** The contour of both subtrees, where `outer` is on the outside and hides the other one. */
function covered(inner: Contour, outer: Contour): Contour {
  const common = outer.reach.length;
  if (common >= inner.reach.length) return outer;
  const start = inner.reach.length - common;
  for (let k = 0; k < common; k += 1) {
    inner.reach[start + k] = (outer.reach[k] ?? 0) + outer.shift - inner.shift;
  }
  return inner;
}

function leastDistance(right: Contour, left: Contour, gap: number): number {
  const common = Math.min(right.reach.length, left.reach.length);
  if (common === 0) return 0;
  let apart = Number.NEGATIVE_INFINITY;
  for (let k = 1; k <= common; k += 1) {
    const own =
      (right.reach[right.reach.length - k] ?? 0) - (left.reach[left.reach.length - k] ?? 0);
    if (own > apart) apart = own;
  }
  return apart + right.shift - left.shift + gap;
}

/** The node whose box is at this place, or none; a binary search within its level. */
export function nodeAt(layout: Layout, x: number, y: number, slack: number): Placed | null {
  const depth = Math.floor((y + slack) / LEVEL);
  const level = layout.levels[depth];
  if (!level) return null;
  let low = 0;
  let high = level.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    const own = layout.placed[level[middle] ?? 0];
    if (own && own.x + own.width / 2 + slack < x) low = middle + 1;
    else high = middle;
  }
  const found = layout.placed[level[low] ?? 0];
  if (!found) return null;
  const isInside =
    Math.abs(found.x - x) <= found.width / 2 + slack &&
    y >= found.y - slack &&
    y <= found.y + found.height + slack;
  return isInside ? found : null;
}

/** Nodes to close at first, so that a large tree opens with what fits a screen. */
export function closedAtFirst(
  nodes: TreeNode[],
  children: Map<number, TreeNode[]>,
  most: number,
): Set<number> {
  const collapsed = new Set<number>();
  if (nodes.length <= most) return collapsed;
  const root = nodes.find((node) => node.parent < 0);
  let level = root ? [root] : [];
  let shown = level.length;
  while (level.length > 0) {
    const next = level.flatMap((node) => children.get(node.id) ?? []);
    if (shown + next.length > most) break;
    shown += next.length;
    level = next;
  }
  for (const node of level) if (children.has(node.id)) collapsed.add(node.id);
  return collapsed;
}

/** Nodes to close so that a path is seen and what leaves it is not. */
export function besidePath(
  nodes: TreeNode[],
  children: Map<number, TreeNode[]>,
  path: ReadonlySet<number>,
): Set<number> {
  const beside = nodes.filter(
    (node) => path.has(node.parent) && !path.has(node.id) && children.has(node.id),
  );
  return new Set(beside.map((node) => node.id));
}
