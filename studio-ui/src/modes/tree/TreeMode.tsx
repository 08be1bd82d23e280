import { useMemo, useState } from "preact/hooks";
import type { Learner, TreeSource } from "../../protocol";
import { catalogue, LearnerMenu, Note, ParameterPanel } from "../../shell";
import { GrownOn, POINTS } from "../GrownOn";
import { isWide } from "../isWide";
import { useLearnerOfMode } from "../learnerOfMode";
import { criteria, ID3, type LectureChoices, lectureParameters } from "./lectureTables";
import { TreeStage } from "./TreeStage";

const isTree = (learner: Learner) => learner.family !== "margin";
const PREFERRED = ["DecisionTreeClassifier", "DecisionTreeRegressor"];

/** The trees of the playground's points, and those of the lectures' tables. */
export function TreeMode() {
  const own = useLearnerOfMode(isTree, PREFERRED);
  const [grownOn, setGrownOn] = useState(POINTS);
  const [choices, setChoices] = useState<LectureChoices>(ID3);
  const source = useMemo<TreeSource | null>(() => {
    if (grownOn !== POINTS) return { lecture: grownOn, parameters: lectureParameters(choices) };
    return own.scene && own.scene.x.length > 0 ? { scene: own.scene } : null;
  }, [grownOn, choices, own.scene]);
  return (
    <div class="mode mode-tree">
      <aside class="mode-panel panel" aria-label="What the tree is grown on">
        <h2>Tree</h2>
        <GrownOn label="Grown on" value={grownOn} testId="tree-source" onChange={setGrownOn} />
        {grownOn === POINTS ? (
          own.learner &&
          own.scene && (
            <>
              <LearnerMenu
                task={own.scene.task}
                value={own.learner.name}
                onChange={own.choose}
                filter={isTree}
                testId="tree-learner"
              />
              <details class="v-details" open={isWide()}>
                <summary>Parameters</summary>
                <ParameterPanel
                  learner={own.learner}
                  values={own.scene.parameters}
                  onChange={own.set}
                  idPrefix="tree-parameter"
                />
              </details>
            </>
          )
        ) : (
          <LectureFields choices={choices} onChoices={setChoices} />
        )}
        <p class="v-faint mode-keys">
          Wheel or pinch zooms, a drag pans, a click folds. With the keyboard: <kbd>←</kbd>{" "}
          <kbd>→</kbd> <kbd>↑</kbd> <kbd>↓</kbd> walk, <kbd>Enter</kbd> folds, <kbd>+</kbd>{" "}
          <kbd>−</kbd> <kbd>0</kbd> zoom.
        </p>
      </aside>
      {source ? (
        <TreeStage key={grownOn} source={source} channel="tree" />
      ) : (
        <Note>There are no points yet: draw some in the playground.</Note>
      )}
    </div>
  );
}

function LectureFields(props: {
  choices: LectureChoices;
  onChoices: (choices: LectureChoices) => void;
}) {
  const { choices, onChoices } = props;
  return (
    <>
      <label class="v-field">
        <span>Criterion</span>
        <select
          value={choices.criterion}
          data-testid="lecture-criterion"
          onChange={(event) => onChoices({ ...choices, criterion: event.currentTarget.value })}
        >
          {criteria(catalogue.value).map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label class="v-field">
        <span>Splits</span>
        <select
          value={choices.split}
          data-testid="lecture-split"
          onChange={(event) => onChoices({ ...choices, split: event.currentTarget.value })}
        >
          <option value="multiway">a branch for each value (ID3)</option>
          <option value="binary">two branches (CART)</option>
        </select>
      </label>
      <label class="v-field">
        <span>Deepest level</span>
        <select
          value={choices.depth === null ? "" : String(choices.depth)}
          data-testid="lecture-depth"
          onChange={(event) => {
            const text = event.currentTarget.value;
            onChoices({ ...choices, depth: text === "" ? null : Number(text) });
          }}
        >
          <option value="">no limit</option>
          {[1, 2, 3, 4].map((depth) => (
            <option key={depth} value={String(depth)}>
              {depth}
            </option>
          ))}
        </select>
      </label>
    </>
  );
}
