import { expect, it } from "vitest";
import { numbersIn } from "./bootstrapValues";
import {
  changeProgress,
  lessonProgress,
  markAnswered,
  readProgress,
  storedProgress,
} from "./progress";

it("progress survives a reload of the tab", () => {
  changeProgress({ done: [], open: "margins", answers: {} });
  markAnswered("margins", "3", false);
  expect(lessonProgress.value.done).toEqual([]);
  markAnswered("margins", "2", true);
  markAnswered("margins", "2", true);
  expect(storedProgress()).toEqual({
    done: ["margins"],
    open: "margins",
    answers: { margins: "2" },
  });
});

it("takes from the storage only what fits", () => {
  expect(readProgress("nonsense").done).toEqual([]);
  expect(readProgress({ done: [1, "a"], open: 3, answers: { a: 1, b: "x" } })).toEqual({
    done: ["a"],
    open: null,
    answers: { b: "x" },
  });
});

it("numbers are read between commas, spaces and lines", () => {
  expect(numbersIn("1, 2.5;3\n-4")).toEqual([1, 2.5, 3, -4]);
  expect(numbersIn("1, two")).toBeNull();
  expect(numbersIn("")).toEqual([]);
});
