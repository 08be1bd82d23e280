import type { Tree, TreeNode } from "../../protocol";
import { percent, readable } from "../numbers";
import { asked, rowsOf } from "./nodeWords";

/** Rows, impurity and shares of one node. */
export function NodeTold(props: { tree: Tree; node: TreeNode; isLeaf: boolean }) {
  const { node, tree } = props;
  return (
    <section class="node-told-card" data-testid="node-told" aria-label={`Node ${node.id}`}>
      <p class="node-told-title">
        <span class="v-faint">{`node ${node.id}${node.branch ? `, ${node.branch}` : ""}`}</span>
        <strong>{props.isLeaf ? `answers ${node.answer}` : asked(node.question)}</strong>
      </p>
      <dl class="node-told-figures">
        <div>
          <dt>rows</dt>
          <dd>{rowsOf(node).split(" ")[0]}</dd>
        </div>
        {node.impurity !== null && (
          <div>
            <dt>impurity</dt>
            <dd>{readable(node.impurity)}</dd>
          </div>
        )}
        {!props.isLeaf && (
          <div>
            <dt>answer so far</dt>
            <dd>{node.answer}</dd>
          </div>
        )}
      </dl>
      {node.shares.length > 0 && (
        <ul class="node-told-shares">
          {node.shares.map((share, k) => (
            <li key={tree.classes[k] ?? k}>
              <span class="node-told-class">{tree.classes[k] ?? k}</span>
              <svg
                class="node-told-bar"
                viewBox="0 0 100 10"
                preserveAspectRatio="none"
                aria-hidden="true"
              >
                <rect class="v-plate" width="100" height="10" />
                <rect class={`v-bar c${k % 7}`} width={100 * share} height="10" />
              </svg>
              <span class="v-number">{percent(share)}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
