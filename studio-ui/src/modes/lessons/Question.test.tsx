import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

const { ask } = vi.hoisted(() => ({ ask: vi.fn() }));
vi.mock("../../shell", () => ({
  ask,
  isSuperseded: () => false,
  ErrorNote: ({ error }: { error: Error | null }) => error && <p role="alert">{error.message}</p>,
}));

import type { Lesson } from "../../protocol";
import { changeProgress, lessonProgress } from "./progress";
import { Question } from "./Question";

const lesson: Lesson = {
  name: "margin",
  title: "Margins",
  paragraphs: [],
  stage: "playground",
  scene: null,
  others: [],
  steps: null,
  table: null,
  question: "How wide is it?",
  choices: [],
  values: [],
  hint: "",
};
const root = document.createElement("div");
document.body.append(root);
const find = <Kind extends Element>(id: string) => root.querySelector<Kind>(`[data-testid=${id}]`)!;
const shown = (own: Lesson) => act(() => render(<Question lesson={own} scene={null} />, root));
const submit = () =>
  act(async () => {
    find("question").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  });

beforeEach(() => {
  ask.mockReset();
  changeProgress({ done: [], answers: {}, open: null });
});
afterEach(() => act(() => render(null, root)));

function type(text: string) {
  act(() => {
    const field = find<HTMLInputElement>("answer");
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

it("sends a number with a point, tells the verdict and remembers what is done", async () => {
  shown(lesson);
  type(" 0,5 ");
  ask.mockResolvedValue({ isRight: true, text: "Right: 0.5." });
  await submit();
  expect(ask).toHaveBeenCalledWith(
    { kind: "check", lesson: "margin", answer: "0.5", scene: null },
    { channel: "check" },
  );
  expect(find("feedback").textContent).toContain("Right: 0.5.");
  expect(lessonProgress.value.done).toEqual(["margin"]);
});

it("sends a choice as it stands, and takes the verdict back when another is chosen", async () => {
  shown({ ...lesson, choices: ["wider, by 2", "narrower"] });
  act(() => find<HTMLInputElement>("choice-0").click());
  ask.mockResolvedValue({ isRight: false, text: "No." });
  await submit();
  expect(ask.mock.calls[0]?.[0]).toMatchObject({ answer: "wider, by 2" });
  expect(find("feedback").textContent).toContain("No.");
  act(() => find<HTMLInputElement>("choice-1").click());
  expect(find("feedback").textContent).toBe("");
  expect(lessonProgress.value.done).toEqual([]);
});

it("asks nothing without an answer, and shows what the library said was wrong", async () => {
  shown(lesson);
  await submit();
  expect(ask).not.toHaveBeenCalled();
  type("a lot");
  ask.mockRejectedValue(new Error("The answer must be a number."));
  await submit();
  expect(root.querySelector("[role=alert]")?.textContent).toBe("The answer must be a number.");
});
