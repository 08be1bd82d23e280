import { useEffect, useMemo, useState } from "preact/hooks";
import type { Scene, Tree, TreeSource } from "../../protocol";
import { ErrorNote, Stage, useAnswer, usePicture } from "../../shell";
import { readable } from "../../views/numbers";
import { TreeViewer } from "../../views/tree/TreeViewer";
import { SlowProgress } from "../SlowProgress";

/** A fitted tree, or one of the trees of an ensemble; a row can be followed to its leaf. */
export function TreeStage(props: { source: TreeSource; channel: string; height?: number }) {
  const { source, channel } = props;
  const [member, setMember] = useState(0);
  const [row, setRow] = useState<number | null>(null);
  const request = useMemo(() => ({ kind: "tree" as const, source, member }), [source, member]);
  const answer = useAnswer<"tree">(request, channel);
  const tree = answer.value;
  const followed = useMemo(
    () => (row === null || !tree ? null : { kind: "follow" as const, source, member, row }),
    [source, member, row, tree],
  );
  const path = useAnswer<"follow">(followed, `${channel}-follow`);
  // Another model may have fewer trees than the one that was looked at.
  useEffect(() => {
    if (tree && member >= tree.members) setMember(Math.max(0, tree.members - 1));
  }, [tree, member]);
  const nodes = row === null || path.isWaiting ? undefined : path.value?.nodes;
  const scene = "scene" in source ? source.scene : null;
  return (
    <div class={scene ? "tree-stage has-points" : "tree-stage"} data-testid="tree-stage">
      <div class="tree-stage-main">
        <ErrorNote error={answer.error ?? path.error} />
        <SlowProgress progress={answer.progress} isWaiting={answer.isWaiting} />
        {tree && tree.members > 1 && (
          <MemberSwitch tree={tree} member={member} onMember={setMember} />
        )}
        {tree && <TreeViewer tree={tree} path={nodes} height={props.height ?? roomyHeight()} />}
      </div>
      <aside class="tree-stage-side" aria-label="Follow a row">
        {tree && (
          <RowChoice
            tree={tree}
            scene={scene}
            row={row}
            onRow={setRow}
            visited={nodes?.length ?? 0}
          />
        )}
        {scene && (
          <PointsBeside scene={scene} row={row} onRow={setRow} channel={`${channel}-points`} />
        )}
        {tree?.table && <LectureRows table={tree.table} row={row} onRow={setRow} />}
      </aside>
    </div>
  );
}

/** As much of the window as leaves room for what is said of a node. */
function roomyHeight(): number {
  return Math.round(Math.min(640, Math.max(360, 0.64 * window.innerHeight)));
}

function MemberSwitch(props: { tree: Tree; member: number; onMember: (member: number) => void }) {
  const { tree, member } = props;
  const last = tree.members - 1;
  return (
    <div class="member-switch" data-testid="member-switch">
      <button
        type="button"
        class="v-tool"
        aria-label="Previous tree"
        disabled={member === 0}
        onClick={() => props.onMember(member - 1)}
      >
        ‹
      </button>
      <label class="member-slider">
        <span>{`Tree ${member + 1} of ${tree.members}`}</span>
        <input
          type="range"
          min="0"
          max={last}
          value={member}
          aria-valuetext={`tree ${member + 1} of ${tree.members}`}
          data-testid="member"
          onInput={(event) => props.onMember(Number(event.currentTarget.value))}
        />
      </label>
      <button
        type="button"
        class="v-tool"
        aria-label="Next tree"
        disabled={member >= last}
        onClick={() => props.onMember(member + 1)}
      >
        ›
      </button>
    </div>
  );
}

function RowChoice(props: {
  tree: Tree;
  scene: Scene | null;
  row: number | null;
  visited: number;
  onRow: (row: number | null) => void;
}) {
  const { row, scene } = props;
  const count = props.tree.table?.rows.length ?? scene?.x.length ?? 0;
  return (
    <div class="row-choice">
      <label class="v-field">
        <span>Follow row</span>
        <input
          type="number"
          min="1"
          max={count}
          value={row === null ? "" : row + 1}
          placeholder={`1 to ${count}`}
          data-testid="follow-row"
          onInput={(event) => {
            const text = event.currentTarget.value;
            const number = Math.trunc(Number(text)) - 1; // people count from 1
            const isRow = text !== "" && number >= 0 && number < count;
            props.onRow(isRow ? number : null);
          }}
        />
      </label>
      {row !== null && (
        <button
          type="button"
          class="v-tool"
          data-testid="follow-none"
          onClick={() => props.onRow(null)}
        >
          Stop
        </button>
      )}
      <p class="row-told" role="status" data-testid="follow-told">
        {row === null
          ? "Choose a row, or click one: its path to a leaf is marked."
          : toldRow(props)}
      </p>
    </div>
  );
}

function toldRow(props: {
  tree: Tree;
  scene: Scene | null;
  row: number | null;
  visited: number;
}): string {
  const { scene, tree, visited } = props;
  const row = props.row ?? 0;
  const values = scene
    ? (scene.x[row] ?? []).map((own, k) => `${scene.features[k]} = ${readable(own, 3)}`)
    : (tree.table?.rows[row] ?? []).map((own, k) => `${tree.table?.columns[k]} = ${own}`);
  const way =
    visited > 0 ? `; ${visited - 1} ${visited === 2 ? "question" : "questions"} to its leaf` : "";
  return `Row ${row + 1}: ${values.join(", ")}${way}.`;
}

/** The points that the tree was grown on: a click follows one of them. */
function PointsBeside(props: {
  scene: Scene;
  row: number | null;
  channel: string;
  onRow: (row: number) => void;
}) {
  const picture = usePicture(props.scene, props.channel, { grid: 80 });
  return (
    <Stage
      scene={props.scene}
      picture={picture.value}
      highlighted={props.row === null ? [] : [props.row]}
      compact
      onPick={props.onRow}
      testId="tree-points"
      label="The points that the tree was grown on. A click follows one of them."
    />
  );
}

function LectureRows(props: {
  table: NonNullable<Tree["table"]>;
  row: number | null;
  onRow: (row: number) => void;
}) {
  const { table } = props;
  return (
    <div class="v-table-box lecture-rows" data-testid="lecture-rows">
      <table class="v-table">
        <caption>The table</caption>
        <thead>
          <tr>
            <th scope="col">row</th>
            <th scope="col">answer</th>
            {table.columns.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((values, k) => (
            <tr key={k} class={k === props.row ? "is-chosen" : ""}>
              <th scope="row">
                <button
                  type="button"
                  class="v-link"
                  aria-pressed={k === props.row}
                  onClick={() => props.onRow(k)}
                >
                  <span class="v-hidden">follow row </span>
                  {k + 1}
                </button>
              </th>
              <td>
                <b>{table.target[k]}</b>
              </td>
              {values.map((value, column) => (
                <td key={table.columns[column]}>{value}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
