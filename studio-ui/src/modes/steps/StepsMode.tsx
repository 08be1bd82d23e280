import { useMemo, useState } from "preact/hooks";
import type { Learner, Scene, StepKind } from "../../protocol";
import { LearnerMenu, Note, ParameterPanel } from "../../shell";
import { GrownOn, POINTS } from "../GrownOn";
import { isWide } from "../isWide";
import { type LearnerOfMode, useLearnerOfMode } from "../learnerOfMode";
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

/** Any learner that can be watched, on the points of the playground; and tables, split by split. */
export function StepsMode() {
  const own = useLearnerOfMode(hasSteps, PREFERRED);
  const [wished, setWished] = useState<StepKind | null>(null);
  const [watched, setWatched] = useState(POINTS);
  const kinds = own.learner?.steps ?? [];
  const kind = wished && kinds.includes(wished) ? wished : (kinds[0] ?? null);
  return (
    <div class="mode mode-steps">
      <aside class="mode-panel panel" aria-label="Algorithm">
        <h2>Learner</h2>
        <GrownOn label="Learns" value={watched} testId="steps-source" onChange={setWatched} />
        {watched === POINTS && <LearnerFields own={own} kind={kind} onKind={setWished} />}
        <p class="v-faint mode-keys">
          <kbd>space</kbd> plays, <kbd>←</kbd> <kbd>→</kbd> step, <kbd>Home</kbd> <kbd>End</kbd>{" "}
          jump.
        </p>
      </aside>
      {watched === POINTS ? (
        <StepsOfPoints scene={own.scene} kind={kind} />
      ) : (
        <StepsOfTable key={watched} lecture={watched} />
      )}
    </div>
  );
}

function StepsOfPoints(props: { scene: Scene | null; kind: StepKind | null }) {
  const { scene, kind } = props;
  if (!scene || !kind) {
    return (
      <Note>
        No learner of this task can be watched step by step. Choose other points in the playground.
      </Note>
    );
  }
  if (scene.x.length === 0) {
    return <Note>There are no points yet: draw some in the playground.</Note>;
  }
  return <StepsStage key={kind} scene={scene} kind={kind} channel="steps" />;
}

function StepsOfTable(props: { lecture: string }) {
  const table = useMemo(() => ({ lecture: props.lecture }), [props.lecture]);
  return <StepsStage scene={table} kind="splits" channel="steps" />;
}

function LearnerFields(props: {
  own: LearnerOfMode;
  kind: StepKind | null;
  onKind: (kind: StepKind) => void;
}) {
  const { scene, learner, choose, set } = props.own;
  if (!scene || !learner) return null;
  return (
    <>
      <LearnerMenu
        task={scene.task}
        value={learner.name}
        onChange={choose}
        filter={hasSteps}
        testId="steps-learner"
      />
      {learner.steps.length > 1 && (
        <KindChoice kinds={learner.steps} value={props.kind} onChange={props.onKind} />
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
    </>
  );
}

function KindChoice(props: {
  kinds: StepKind[];
  value: StepKind | null;
  onChange: (kind: StepKind) => void;
}) {
  return (
    <fieldset class="v-choices">
      <legend>Algorithm</legend>
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
