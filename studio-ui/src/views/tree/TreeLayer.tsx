import type { Tree } from "../../protocol";
import type { Layout, Placed } from "./layout";
import { majority, rowsOf, spokenNode, titleOf } from "./nodeWords";
import { isSeen, type Rectangle } from "./viewport";

/** How much is drawn of a node: its text, its box, or no more than a patch of colour. */
export type Detail = "text" | "box" | "patch";

export function detailAt(k: number): Detail {
  if (k >= 0.5) return "text";
  return k >= 0.12 ? "box" : "patch";
}

interface LayerProps {
  tree: Tree;
  layout: Layout;
  part: Rectangle;
  detail: Detail;
  prefix: string;
  path: ReadonlySet<number>;
  marked: number | null;
  focused: number;
}

/** Everything within `part` of the world. */
export function TreeLayer(props: LayerProps) {
  const { layout, part, detail } = props;
  const shown = layout.placed.filter((own) => isSeen(own, part));
  const spoken = detail === "patch" ? familyOf(layout, props.focused) : withFocused(shown, props);
  return (
    <g>
      <Edges {...props} />
      {detail === "patch" && <Patches shown={shown} />}
      {spoken.map((own) => (
        <Node key={own.node.id} own={own} {...props} />
      ))}
    </g>
  );
}

function withFocused(shown: Placed[], props: LayerProps): Placed[] {
  const index = props.layout.indexOf.get(props.focused);
  const focused = index === undefined ? undefined : props.layout.placed[index];
  return focused && !shown.includes(focused) ? [...shown, focused] : shown;
}

/** The focused node and those above it: what a screen reader needs of a tree drawn as patches. */
function familyOf(layout: Layout, focused: number): Placed[] {
  const family: Placed[] = [];
  let index = layout.indexOf.get(focused) ?? 0;
  while (index >= 0) {
    const own = layout.placed[index];
    if (!own) break;
    family.unshift(own);
    index = own.above;
  }
  return family;
}

function Edges(props: LayerProps) {
  const { layout, part } = props;
  const plain: string[] = [];
  const followed: string[] = [];
  const names: { own: Placed; x: number; y: number }[] = [];
  for (const own of layout.placed) {
    const above = layout.placed[own.above];
    if (!above || own.y < part.top || above.y > part.bottom) continue;
    if (Math.max(own.x, above.x) < part.left || Math.min(own.x, above.x) > part.right) continue;
    const start = above.y + above.height;
    const middle = (start + own.y) / 2;
    const line = `M${above.x.toFixed(1)} ${start}C${above.x.toFixed(1)} ${middle} ${own.x.toFixed(1)} ${middle} ${own.x.toFixed(1)} ${own.y}`;
    (props.path.has(own.node.id) && props.path.has(above.node.id) ? followed : plain).push(line);
    if (props.detail === "text" && own.node.branch) {
      names.push({ own, x: (own.x * 2 + above.x) / 3, y: start + 0.68 * (own.y - start) + 3 });
    }
  }
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a group of SVG takes no focus
    <g aria-hidden="true">
      <path class={`tree-edge ${props.detail}`} d={plain.join("")} />
      {followed.length > 0 && (
        <path class={`tree-edge is-followed ${props.detail}`} d={followed.join("")} />
      )}
      {names.map(({ own, x, y }) => (
        <text key={own.node.id} class="tree-branch" x={x} y={y} text-anchor="middle">
          {own.node.branch}
        </text>
      ))}
    </g>
  );
}

/** One path for each colour: thousands of nodes in a handful of elements. */
function Patches(props: { shown: Placed[] }) {
  const paths = new Map<number, string[]>();
  for (const own of props.shown) {
    const code = majority(own.node);
    const patch = `M${(own.x - own.width / 2).toFixed(0)} ${own.y}h${own.width.toFixed(0)}v${own.height}h-${own.width.toFixed(0)}z`;
    const known = paths.get(code);
    if (known) known.push(patch);
    else paths.set(code, [patch]);
  }
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a group of SVG takes no focus
    <g aria-hidden="true">
      {[...paths].map(([code, parts]) => (
        <path key={code} class={code < 0 ? "v-rest" : `v-bar c${code % 7}`} d={parts.join("")} />
      ))}
    </g>
  );
}

function Node(props: LayerProps & { own: Placed }) {
  const { own, detail } = props;
  const { node, isLeaf, width, height } = own;
  const classes = [
    "tree-node",
    isLeaf ? "is-leaf" : "",
    props.path.has(node.id) ? "is-followed" : "",
    props.marked === node.id ? "is-marked" : "",
    props.focused === node.id ? "is-focused" : "",
  ];
  const code = majority(node);
  return (
    <g
      id={`${props.prefix}-${node.id}`}
      class={classes.join(" ")}
      transform={`translate(${(own.x - width / 2).toFixed(1)} ${own.y})`}
      role="treeitem"
      aria-level={own.depth + 1}
      aria-posinset={own.position}
      aria-setsize={own.siblings}
      aria-expanded={isLeaf ? undefined : !own.isCollapsed}
      aria-selected={props.focused === node.id}
      aria-label={spokenNode(node, props.tree, isLeaf)}
      data-node={node.id}
    >
      {own.isCollapsed && (
        <rect class="tree-stack" x={4} y={4} width={width} height={height} rx={7} />
      )}
      <rect class="tree-box" width={width} height={height} rx={isLeaf ? 14 : 6} />
      {detail === "patch" ? (
        <rect class={code < 0 ? "v-rest" : `v-bar c${code % 7}`} width={width} height={height} />
      ) : (
        <Shares own={own} />
      )}
      {detail === "text" && (
        <>
          <text class="tree-title" x={width / 2} y={19} text-anchor="middle">
            {titleOf(node, isLeaf)}
          </text>{" "}
          <text class="tree-rows" x={width / 2} y={33} text-anchor="middle">
            {rowsOf(node)}
          </text>
        </>
      )}
      {own.isCollapsed && detail !== "patch" && (
        <g class="tree-more">
          <circle cx={width / 2} cy={height + 4} r={8} />
          <path d={`M${width / 2 - 4} ${height + 4}h8M${width / 2} ${height}v8`} />
        </g>
      )}
    </g>
  );
}

/** A bar with the shares of the classes along the bottom of the box. */
function Shares(props: { own: Placed }) {
  const { node, width, height } = props.own;
  const room = width - 16;
  let start = 8;
  return (
    <>
      {node.shares.map((share, k) => {
        const left = start;
        start += room * share;
        return share > 0 ? (
          <rect
            key={k}
            class={`v-bar c${k % 7}`}
            x={left}
            y={height - 11}
            width={Math.max(0.5, room * share)}
            height={6}
          />
        ) : null;
      })}
    </>
  );
}
