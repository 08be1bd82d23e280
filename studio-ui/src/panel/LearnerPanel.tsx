import type { Value } from "../protocol";
import {
  changeScene,
  chooseLearner,
  currentLearner,
  defaultsOf,
  parameters,
  setParameter,
  settle,
  task,
} from "../state/scene";
import { LearnerMenu } from "./LearnerMenu";
import { ParameterPanel } from "./ParameterPanel";

/** The learner of the shared scene and its parameters. */
export function LearnerPanel() {
  const learner = currentLearner.value;
  const change = (name: string, value: Value, isSettled: boolean) => {
    setParameter(name, value, `parameter-${name}`);
    if (isSettled) settle();
  };
  return (
    <section class="panel" aria-label="Learner" data-testid="learner-panel">
      <h2>Learner</h2>
      <LearnerMenu
        task={task.value}
        value={learner?.name ?? ""}
        onChange={chooseLearner}
        label="What learns"
      />
      {learner && <p class="hint">{learner.summary}</p>}
      {learner && <ParameterPanel learner={learner} values={parameters.value} onChange={change} />}
      {learner && learner.parameters.length > 0 && (
        <button
          type="button"
          class="tool wide"
          data-testid="defaults"
          onClick={() => changeScene({ parameters: defaultsOf(learner) })}
        >
          Back to the defaults
        </button>
      )}
    </section>
  );
}
