import { expect, it } from "vitest";
import type { Learner } from "../protocol";
import { chosenLearner } from "./learnerOfMode";

function learner(name: string, task: Learner["task"], steps: Learner["steps"]): Learner {
  return { name, title: name, summary: "", family: "margin", task, parameters: [], steps };
}

const learners = [
  learner("NuSVC", "classification", []),
  learner("Perceptron", "classification", ["perceptron"]),
  learner("SVC", "classification", ["smo"]),
  learner("SVR", "regression", []),
];
const hasSteps = (own: Learner) => own.steps.length > 0;

it("takes the shared learner where the mode can show it", () => {
  const shared = { learner: "Perceptron", task: "classification" as const };
  expect(chosenLearner(learners, shared, hasSteps, ["SVC"])?.name).toBe("Perceptron");
});

it("takes a preferred one where it cannot, and none where there is none", () => {
  const shared = { learner: "NuSVC", task: "classification" as const };
  expect(chosenLearner(learners, shared, hasSteps, ["SVC"])?.name).toBe("SVC");
  expect(chosenLearner(learners, { learner: "SVR", task: "regression" }, hasSteps, [])).toBeNull();
});
