import { useState } from "preact/hooks";
import type { Tree, TreeNode } from "../../protocol";
import { spokenNode } from "./nodeWords";

/** The tree as nested lists that open one by one: for reading aloud, and for searching in the page. */
export function TreeList(props: { tree: Tree; below: Map<number, TreeNode[]> }) {
  const root = props.tree.nodes.find((node) => node.parent < 0);
  if (!root) return null;
  return (
    <ul class="tree-list" data-testid="tree-list">
      <Item {...props} node={root} isOpen={true} />
    </ul>
  );
}

function Item(props: {
  tree: Tree;
  below: Map<number, TreeNode[]>;
  node: TreeNode;
  isOpen: boolean;
}) {
  const [isOpen, setIsOpen] = useState(props.isOpen);
  const below = props.below.get(props.node.id) ?? [];
  const words = spokenNode(props.node, props.tree, below.length === 0);
  if (below.length === 0) return <li>{words}</li>;
  return (
    <li>
      <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
        <summary>{words}</summary>
        {isOpen && (
          <ul>
            {below.map((node) => (
              <Item
                key={node.id}
                tree={props.tree}
                below={props.below}
                node={node}
                isOpen={false}
              />
            ))}
          </ul>
        )}
      </details>
    </li>
  );
}
