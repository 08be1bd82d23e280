import { useMemo } from "preact/hooks";
import type { Learner, Scene, Value } from "../protocol";
import { catalogue, changeScene, defaultsOf, scene, setParameter, settle } from "../shell";

export interface LearnerOfMode {
  /** The shared scene, with a learner that the mode can show; null without any. */
  scene: Scene | null;
  learner: Learner | null;
  choose: (name: string) => void;
  set: (name: string, value: Value, isSettled: boolean) => void;
}

/**
 * The shared scene in a mode that cannot show every learner: where the shared one does not fit,
 * another stands in, and the shared scene is left alone until something is chosen here.
 */
export function useLearnerOfMode(
  fits: (learner: Learner) => boolean,
  preferred: string[],
): LearnerOfMode {
  const shared = scene.value;
  const learners = catalogue.value?.learners;
  const learner = useMemo(
    () => chosenLearner(learners ?? [], shared, fits, preferred),
    [learners, shared.learner, shared.task, fits, preferred],
  );
  const own = useMemo(() => {
    if (!learner) return null;
    if (learner.name === shared.learner) return shared;
    return { ...shared, learner: learner.name, parameters: defaultsOf(learner) };
  }, [learner, shared]);
  const set = (name: string, value: Value, isSettled: boolean) => {
    if (!own) return;
    if (own === shared) setParameter(name, value, `mode-${name}`);
    else {
      const parameters = { ...own.parameters, [name]: value };
      changeScene({ learner: own.learner, parameters }, `mode-${name}`);
    }
    if (isSettled) settle();
  };
  // From its defaults: the depth of a tree is no depth for the stumps of a boosting.
  const choose = (name: string) => {
    const chosen = learners?.find((other) => other.name === name);
    if (chosen) changeScene({ learner: name, parameters: defaultsOf(chosen) });
  };
  return { scene: own, learner, choose, set };
}

export function chosenLearner(
  learners: Learner[],
  shared: Pick<Scene, "learner" | "task">,
  fits: (learner: Learner) => boolean,
  preferred: string[],
): Learner | null {
  const usable = learners.filter((own) => own.task === shared.task && fits(own));
  return (
    usable.find((own) => own.name === shared.learner) ??
    usable.find((own) => preferred.includes(own.name)) ??
    usable[0] ??
    null
  );
}
