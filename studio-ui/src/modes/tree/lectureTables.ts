import type { Catalogue, Value } from "../../protocol";

export interface LectureChoices {
  criterion: string;
  split: string;
  depth: number | null;
}

export const ID3: LectureChoices = { criterion: "entropy", split: "multiway", depth: null };

export function lectureParameters(choices: LectureChoices): Record<string, Value> {
  return { criterion: choices.criterion, split: choices.split, max_depth: choices.depth };
}

/** The criteria that trees of classes may use, as the menus of the library have them. */
export function criteria(catalogue: Catalogue | null): string[] {
  const tree = catalogue?.learners.find((own) => own.name === "DecisionTreeClassifier");
  const choices = tree?.parameters.find((own) => own.name === "criterion")?.choices ?? [];
  const names = choices.map((own) => own.value).filter((own) => typeof own === "string");
  return names.length > 0 ? names : ["entropy", "gini"];
}
