import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import type { Tree, TreeNode } from "../../protocol";
import { counted } from "../../state/numbers";
import { useWidth } from "../useWidth";
import {
  besidePath,
  childrenOf,
  closedAtFirst,
  type Layout,
  layoutOf,
  type Placed,
} from "./layout";
import { NodeTold } from "./NodeTold";
import { sizeOf } from "./nodeWords";
import { detailAt, TreeLayer } from "./TreeLayer";
import { TreeList } from "./TreeList";
import { keyed } from "./treeKeys";
import { useTreeGestures } from "./useTreeGestures";
import {
  fitted,
  isInside,
  opened,
  type Rectangle,
  seen,
  showing,
  type Viewport,
  zoomed,
} from "./viewport";

const LARGE = 80; // nodes; a larger tree opens folded
const AT_FIRST = 15; // nodes that it opens with: about as many as can be read side by side

/** A tree to zoom, to fold and to walk through; draws only what is on the screen. */
export function TreeViewer(props: {
  tree: Tree;
  /** Nodes that a row visits. */
  path?: number[];
  /** A node that something is being said about. */
  marked?: number | null;
  height?: number;
  isCompact?: boolean;
  label?: string;
}) {
  const { tree } = props;

  const prefix = useId();
  const { ref: box, width: units, zoom } = useWidth<HTMLDivElement>(640);
  const width = units * zoom;
  const height = Math.round((props.height ?? 480) * Math.sqrt(zoom));
  const svg = useRef<SVGSVGElement>(null);
  const children = useMemo(() => childrenOf(tree.nodes), [tree]);
  const [collapsed, setCollapsed] = useState<ReadonlySet<number>>(() =>
    foldedAtFirst(tree, children),
  );
  const [focused, setFocused] = useState(0);
  const [hovered, setHovered] = useState<number | null>(null);
  const [moved, setMoved] = useState<Viewport | null>(null);
  const layout = useMemo(
    () => layoutOf(tree.nodes, children, collapsed, sizeOf),
    [tree, children, collapsed],
  );
  const path = useMemo(() => new Set(props.path ?? []), [props.path]);
  const view = moved ?? opened(layout, width, height, zoom);
  const current = useRef({ view, layout });
  current.current = { view, layout };

  // A tree of another model opens anew; one that grows by a split keeps what is folded.
  const size = tree.nodes.length;
  const previous = useRef({ member: tree.member, size });
  useEffect(() => {
    const isGrown = Math.abs(size - previous.current.size) <= 8;
    if (tree.member !== previous.current.member || !isGrown) {
      setCollapsed(foldedAtFirst(tree, children));
      setMoved(null);
      setFocused(0);
    }
    previous.current = { member: tree.member, size };
  }, [tree, children, size]);

  // What is said of a node of this step is what is told below the tree.
  const { marked } = props;
  useEffect(() => {
    if (marked !== undefined && marked !== null) setFocused(marked);
  }, [marked]);

  // A followed row must be seen, down to its leaf: in a large tree, the rest is folded.
  useEffect(() => {
    if (path.size === 0) return;
    if (tree.nodes.length <= LARGE) {
      setCollapsed((old) => new Set([...old].filter((id) => !path.has(id))));
      return;
    }
    setCollapsed(besidePath(tree.nodes, children, path));
    setMoved(null);
  }, [path, tree, children]);

  const toggle = (own: Placed) => {
    if (own.isLeaf) return;
    const next = new Set(collapsed);
    if (!next.delete(own.node.id)) next.add(own.node.id);
    const after = layoutOf(tree.nodes, children, next, sizeOf);
    setCollapsed(next);
    setMoved(held(own, view, after));
  };
  const focus = (own: Placed) => {
    setFocused(own.node.id);
    setHovered(null);
    setMoved(showing(own, current.current.view, width, height));
  };
  useTreeGestures(svg, current, {
    isPassedBy: props.isCompact ?? false,
    onView: setMoved,
    onHover: (own) => setHovered(own?.node.id ?? null),
    onClick: (own) => {
      setFocused(own.node.id);
      toggle(own);
    },
  });

  const onKeyDown = (event: KeyboardEvent) => {
    const done = keyed(event, layout, focused, {
      focus,
      toggle,
      zoom: (factor) => setMoved(zoomed(view, factor, width / 2, height / 2)),
      pan: (x, y) => setMoved({ ...view, x: view.x + x, y: view.y + y }),
      fit: () => setMoved(fitted(layout, width, height)),
    });
    if (done) {
      event.preventDefault();
      event.stopPropagation();
    }
  };

  const detail = detailAt(view.k);
  const part = useStablePart(view, width, height, layout);
  const layer = useMemo(
    () => (
      <TreeLayer
        tree={tree}
        layout={layout}
        part={part}
        detail={detail}
        prefix={prefix}
        path={path}
        marked={marked ?? null}
        focused={focused}
      />
    ),
    [tree, layout, part, detail, prefix, path, marked, focused],
  );
  const told = layout.placed[layout.indexOf.get(hovered ?? focused) ?? 0];
  const isFolded = collapsed.size > 0;
  const hint = hintOf(isFolded, isInside(worldOf(layout), seen(view, width, height, 0)));
  return (
    <div class={`tree-viewer${props.isCompact ? " is-compact" : ""}`} data-testid="tree-viewer">
      <div class="tree-tools" role="toolbar" aria-label="View of the tree">
        <Tool
          name="Zoom in"
          sign="+"
          id="zoom-in"
          onClick={() => setMoved(zoomed(view, 1.4, width / 2, height / 2))}
        />
        <Tool
          name="Zoom out"
          sign="−"
          id="zoom-out"
          onClick={() => setMoved(zoomed(view, 1 / 1.4, width / 2, height / 2))}
        />
        <Tool
          name="Fit all of the tree"
          sign="Fit all"
          id="fit"
          onClick={() => setMoved(fitted(layout, width, height))}
        />
        <Tool
          name={isFolded ? "Unfold all" : "Fold below the root"}
          sign={isFolded ? "Unfold all" : "Fold"}
          id="fold"
          onClick={() => {
            setCollapsed(
              isFolded ? new Set() : new Set((children.get(0) ?? []).map((node) => node.id)),
            );
            setMoved(null);
          }}
        />
        <span class="v-faint tree-count">{countTold(size, layout)}</span>
      </div>
      <div ref={box} class="tree-frame">
        {/* biome-ignore lint/a11y/useAriaActivedescendantWithTabindex: it has one, spelt as SVG needs it */}
        <svg
          ref={svg}
          class="tree-canvas"
          width={width}
          height={height}
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: it is drawn, and walked through by keys
          role="tree"
          tabindex={0}
          aria-label={
            props.label ?? "The tree. Arrow keys walk through it, Enter folds, plus and minus zoom."
          }
          aria-activedescendant={`${prefix}-${focused}`}
          data-testid="tree-canvas"
          data-scale={view.k.toFixed(4)}
          onKeyDown={onKeyDown}
        >
          <g transform={`translate(${view.x} ${view.y}) scale(${view.k})`}>{layer}</g>
        </svg>
        {hint && (
          <p class="tree-hint" data-testid="tree-hint">
            {hint}
          </p>
        )}
      </div>
      <ClassLegend classes={tree.classes} />
      {told && <NodeTold tree={tree} node={told.node} isLeaf={told.isLeaf} />}
      {!props.isCompact && (
        <details class="v-details">
          <summary>As a list</summary>
          <TreeList tree={tree} below={children} />
        </details>
      )}
    </div>
  );
}

/** Small trees open whole; of large ones what is around the root, at a size that can be read. */
function foldedAtFirst(tree: Tree, children: Map<number, TreeNode[]>): Set<number> {
  return tree.nodes.length <= LARGE ? new Set() : closedAtFirst(tree.nodes, children, AT_FIRST);
}

function countTold(size: number, layout: Layout): string {
  const shown = layout.placed.length;
  const all = counted(size, "node");
  return shown < size ? `${all}, ${shown.toLocaleString("en")} unfolded` : all;
}

/** What to do where not all of the tree is in sight. */
function hintOf(isFolded: boolean, isWhole: boolean): string {
  if (isFolded) return "A part of the tree: a click on a box with + unfolds it.";
  return isWhole ? "" : "A part of the tree: drag to move it, “Fit all” shows the whole.";
}

function worldOf(layout: Layout): Rectangle {
  return { left: layout.left, right: layout.right, top: 0, bottom: layout.height };
}

function Tool(props: { name: string; sign: string; id: string; onClick: () => void }) {
  return (
    <button
      type="button"
      class="v-tool"
      aria-label={props.name}
      title={props.name}
      data-testid={`tree-${props.id}`}
      onClick={props.onClick}
    >
      {props.sign}
    </button>
  );
}

function ClassLegend(props: { classes: string[] }) {
  if (props.classes.length === 0) return null;
  return (
    <ul class="v-legend">
      {props.classes.map((name, k) => (
        <li key={name}>
          <svg class="v-key" width="12" height="12" aria-hidden="true">
            <rect class={`v-bar c${k % 7}`} width="12" height="12" rx="2" />
          </svg>
          {name}
        </li>
      ))}
    </ul>
  );
}

/** The same node at the same place of the screen, whatever folding moved in the world. */
function held(own: Placed, view: Viewport, after: Layout): Viewport {
  const now = after.placed[after.indexOf.get(own.node.id) ?? 0];
  if (!now) return view;
  return { ...view, x: view.x + view.k * (own.x - now.x), y: view.y + view.k * (own.y - now.y) };
}

/** The drawn part of the world: another one only when the screen leaves it, so that panning is cheap. */
function useStablePart(view: Viewport, width: number, height: number, layout: Layout): Rectangle {
  const drawn = useRef<{ part: Rectangle; k: number; layout: Layout } | null>(null);
  const now = seen(view, width, height, 0);
  const old = drawn.current;
  const isUsable =
    old !== null && old.layout === layout && isInside(now, old.part) && view.k < 2.5 * old.k;
  if (!isUsable) drawn.current = { part: seen(view, width, height, 0.6), k: view.k, layout };
  return (drawn.current as { part: Rectangle }).part;
}
