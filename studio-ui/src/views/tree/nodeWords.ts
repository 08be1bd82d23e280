import type { Tree, TreeNode } from "../../protocol";
import { percent, readable } from "../numbers";

const LETTER = 7.1; // of the font of boxes, on average
const LONGEST = 30;

/** What stands in the box: what is asked, or what is answered. */
export function titleOf(node: TreeNode, isLeaf: boolean): string {
  return shortened(isLeaf ? node.answer : asked(node.question || node.answer));
}

/** A question with the sign that people write. */
export function asked(question: string): string {
  return question.replace(" <= ", " ≤ ").replace(" >= ", " ≥ ");
}

export function rowsOf(node: TreeNode): string {
  return `${node.rows.toLocaleString("en")} ${node.rows === 1 ? "row" : "rows"}`;
}

function shortened(text: string): string {
  const letters = Array.from(text);
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : text;
}

export function sizeOf(node: TreeNode, isLeaf: boolean): [number, number] {
  const longest = Math.max(titleOf(node, isLeaf).length, rowsOf(node).length);
  return [Math.max(66, LETTER * longest + 22), node.shares.length > 0 ? 50 : 42];
}

/** The class with the largest share; -1 without classes. */
export function majority(node: TreeNode): number {
  let best = -1;
  let largest = -1;
  node.shares.forEach((share, k) => {
    if (share > largest) {
      largest = share;
      best = k;
    }
  });
  return best;
}

/** All there is to say about a node, in a sentence or two. */
export function spokenNode(node: TreeNode, tree: Tree, isLeaf: boolean): string {
  const branch = node.branch ? `${node.branch}: ` : "";
  const what = isLeaf ? `answers ${node.answer}` : `asks ${asked(node.question)}`;
  const shares = node.shares
    .map((share, k) => ({ share, name: tree.classes[k] ?? String(k) }))
    .filter((own) => own.share > 0)
    .map((own) => `${own.name} ${percent(own.share)}`);
  const told = shares.length > 0 ? `; ${shares.join(", ")}` : "";
  const impurity = node.impurity === null ? "" : `; impurity ${readable(node.impurity, 3)}`;
  return `${branch}${what}, ${rowsOf(node)}${impurity}${told}`;
}
