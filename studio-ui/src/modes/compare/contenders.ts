import { signal } from "@preact/signals";
import type { Learner, Scene, Task, Value } from "../../protocol";
import { defaultsOf } from "../../shell";

export interface Contender {
  learner: string;
  parameters: Record<string, Value>;
}

export const CHANNELS = ["a", "b", "c", "d"] as const;

/** Who is compared, of each task; kept while other modes are open. */
export const contenders = signal<Record<Task, Contender[]>>({ classification: [], regression: [] });

const BEGINNING: Record<Task, string[]> = {
  classification: ["SVC", "DecisionTreeClassifier", "RandomForestClassifier"],
  regression: ["SVR", "DecisionTreeRegressor", "RandomForestRegressor"],
};

/** Two to begin with: the learner of the playground, and another one. */
export function firstContenders(scene: Scene, learners: Learner[]): Contender[] {
  const own: Contender = { learner: scene.learner, parameters: scene.parameters };
  const other = nextContender([own], scene.task, learners);
  return other ? [own, other] : [own];
}

/** One that is not there yet, if possible. */
export function nextContender(
  present: Contender[],
  task: Task,
  learners: Learner[],
): Contender | null {
  const names = new Set(present.map((own) => own.learner));
  const usable = learners.filter((own) => own.task === task);
  const ranked = [
    ...BEGINNING[task].flatMap((name) => usable.filter((own) => own.name === name)),
    ...usable,
  ];
  const found = ranked.find((own) => !names.has(own.name)) ?? ranked[0];
  return found ? { learner: found.name, parameters: defaultsOf(found) } : null;
}

export function replaced(all: Contender[], place: number, own: Contender | null): Contender[] {
  if (own === null) return all.filter((_, k) => k !== place);
  return all.map((old, k) => (k === place ? own : old));
}
