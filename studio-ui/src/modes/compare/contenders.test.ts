import { expect, it } from "vitest";
import type { Learner, Scene } from "../../protocol";
import { firstContenders, nextContender, replaced } from "./contenders";

const learners = ["SVC", "DecisionTreeClassifier", "Perceptron"].map(
  (name): Learner => ({
    name,
    title: name,
    summary: "",
    family: "margin",
    task: "classification",
    parameters: [],
    steps: [],
  }),
);
const scene = { task: "classification", learner: "SVC", parameters: { C: 3 } } as unknown as Scene;

it("begins with the learner of the playground and another one", () => {
  expect(firstContenders(scene, learners)).toEqual([
    { learner: "SVC", parameters: { C: 3 } },
    { learner: "DecisionTreeClassifier", parameters: {} },
  ]);
});

it("adds one that is not there yet, and repeats when all are", () => {
  const present = learners.map((own) => ({ learner: own.name, parameters: {} }));
  expect(nextContender(present.slice(0, 2), "classification", learners)?.learner).toBe(
    "Perceptron",
  );
  expect(nextContender(present, "classification", learners)?.learner).toBe("SVC");
  expect(nextContender([], "regression", learners)).toBeNull();
});

it("replaces and removes", () => {
  const [a, b] = [
    { learner: "a", parameters: {} },
    { learner: "b", parameters: {} },
  ];
  expect(replaced([a!, b!], 0, b!)).toEqual([b, b]);
  expect(replaced([a!, b!], 0, null)).toEqual([b]);
});
