import { useState } from "preact/hooks";
import type { Learner, StepKind } from "../../protocol";
import { LearnerMenu, Note, ParameterPanel } from "../../shell";
import { isWide } from "../isWide";
import { useLearnerOfMode } from "../learnerOfMode";
import { StepsStage } from "./StepsStage";

export const STEP_TITLES: Record<StepKind, string> = {
  perceptron: "Perceptron: one mistake at a time",
  smo: "SMO: one pair at a time",
  subgradient: "Subgradient descent",
  hull: "Nearest points of the hulls",
  splits: "Growing: one split at a time",
  pruning: "Pruning: one branch at a time",
  members: "Members: one tree at a time",
  adaboost: "Boosting: one round at a time",
  gradient: "Gradient boosting: one tree at a time",
};

const hasSteps = (learner: Learner) => learner.steps.length > 0;
const PREFERRED = ["SVC", "DecisionTreeRegressor"];

/** Any learner that can be watched, on the points of the playground. */
export function StepsMode() {
  const { scene, learner, choose, set } = useLearnerOfMode(hasSteps, PREFERRED);
  const [wished, setWished] = useState<StepKind | null>(null);
  if (!scene || !learner) {
    return (
      <div class="mode">
        <Note>
          No learner of this task can be watched step by step. Choose other points in the
          playground.
        </Note>
      </div>
    );
  }
  const kind = wished && learner.steps.includes(wished) ? wished : learner.steps[0];
  return (
    <div class="mode mode-steps">
      <aside class="mode-panel panel" aria-label="Learner">
        <h2>Learner</h2>
        <LearnerMenu
          task={scene.task}
          value={learner.name}
          onChange={choose}
          filter={hasSteps}
          testId="steps-learner"
        />
        {learner.steps.length > 1 && (
          <KindChoice kinds={learner.steps} value={kind ?? null} onChange={setWished} />
        )}
        <p class="v-faint">{learner.summary}</p>
        <details class="v-details" open={isWide()}>
          <summary>Parameters</summary>
          <ParameterPanel
            learner={learner}
            values={scene.parameters}
            onChange={set}
            idPrefix="steps-parameter"
          />
        </details>
        <p class="v-faint mode-keys">
          <kbd>space</kbd> plays, <kbd>←</kbd> <kbd>→</kbd> step, <kbd>Home</kbd> <kbd>End</kbd>{" "}
          jump.
        </p>
      </aside>
      {scene.x.length === 0 ? (
        <Note>There are no points yet: draw some in the playground.</Note>
      ) : (
        kind && <StepsStage key={kind} scene={scene} kind={kind} channel="steps" />
      )}
    </div>
  );
}

function KindChoice(props: {
  kinds: StepKind[];
  value: StepKind | null;
  onChange: (kind: StepKind) => void;
}) {
  return (
    <fieldset class="v-choices">
      <legend>What is watched</legend>
      {props.kinds.map((kind) => (
        <label key={kind}>
          <input
            type="radio"
            name="step-kind"
            checked={kind === props.value}
            data-testid={`step-kind-${kind}`}
            onChange={() => props.onChange(kind)}
          />
          {STEP_TITLES[kind] ?? kind}
        </label>
      ))}
    </fieldset>
  );
}
