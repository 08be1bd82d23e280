import { expect, it } from "vitest";
import type { Steps } from "../../protocol";
import { namesOf, stepsAround } from "./FiguresTable";

it("as many rows wherever the step is", () => {
  expect(stepsAround(0, 20, 3)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(stepsAround(10, 20, 3)).toEqual([7, 8, 9, 10, 11, 12, 13]);
  expect(stepsAround(20, 20, 3)).toEqual([14, 15, 16, 17, 18, 19, 20]);
  expect(stepsAround(1, 2, 3)).toEqual([1, 2]);
  expect(stepsAround(0, 0, 3)).toEqual([]);
});

it("figures in the order in which they first appear", () => {
  const steps: Steps["steps"] = [
    { text: "", figures: { gap: 1, pair: "2, 3" } },
    { text: "", figures: { gap: 0.5, clipped: "yes" } },
  ];
  expect(namesOf({ steps })).toEqual(["gap", "pair", "clipped"]);
});
