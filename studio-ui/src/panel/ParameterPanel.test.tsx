import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Learner, Value } from "../protocol";
import { ParameterPanel } from "./ParameterPanel";

const TREE: Learner = {
  name: "Tree",
  title: "Tree",
  summary: "",
  family: "tree",
  task: "classification",
  steps: [],
  parameters: [
    {
      name: "max_depth",
      title: "depth",
      summary: "Questions in a row.",
      kind: "integer",
      default: null,
      low: 1,
      high: 20,
      none: "no limit",
    },
    {
      name: "criterion",
      title: "criterion",
      summary: "",
      kind: "choice",
      default: "gini",
      choices: [
        { value: "gini", title: "Gini index" },
        { value: "entropy", title: "entropy" },
      ],
    },
    { name: "prune", title: "pruned", summary: "", kind: "flag", default: false },
    {
      name: "alpha",
      title: "alpha",
      summary: "",
      kind: "number",
      scale: "log",
      low: 0.001,
      high: 1,
      default: 0.01,
      when: { name: "prune", values: [true] },
    },
  ],
};

let root: HTMLElement;
let said: [string, Value, boolean][];

function show(values: Record<string, Value>): void {
  const onChange = (name: string, value: Value, isSettled: boolean) =>
    said.push([name, value, isSettled]);
  act(() => render(<ParameterPanel learner={TREE} values={values} onChange={onChange} />, root));
}

function field<Kind extends HTMLElement>(name: string): Kind {
  return root.querySelector(`[data-testid="parameter-${name}"]`) as Kind;
}

function fire(element: HTMLElement, event: string): void {
  act(() => {
    element.dispatchEvent(new Event(event, { bubbles: true }));
  });
}

beforeEach(() => {
  root = document.createElement("div");
  document.body.append(root);
  said = [];
});

afterEach(() => {
  act(() => render(null, root));
  root.remove();
});

describe("ParameterPanel", () => {
  it("shows defaults where nothing is set, and hides what has no meaning", () => {
    show({});
    expect(field<HTMLInputElement>("max_depth").disabled).toBe(true);
    expect(field<HTMLInputElement>("max_depth-none").checked).toBe(true);
    expect(field<HTMLSelectElement>("criterion").value).toBe("0");
    expect(field("alpha")).toBeNull();
    show({ prune: true });
    expect(field("alpha")).not.toBeNull();
  });

  it("says numbers of the scale, settled or not", () => {
    show({ max_depth: 5, prune: true });
    const depth = field<HTMLInputElement>("max_depth");
    depth.value = "1000";
    fire(depth, "input");
    fire(depth, "change");
    const alpha = field<HTMLInputElement>("alpha");
    alpha.value = "0";
    fire(alpha, "input");
    expect(said).toEqual([
      ["max_depth", 20, false],
      ["max_depth", 20, true],
      ["alpha", 0.001, false],
    ]);
  });

  it("goes to no limit and back", () => {
    show({ max_depth: 5 });
    const none = field<HTMLInputElement>("max_depth-none");
    none.checked = true;
    fire(none, "change");
    expect(said[0]).toEqual(["max_depth", null, true]);
    show({ max_depth: null });
    none.checked = false;
    fire(none, "change");
    expect(said[1]?.[1]).toBeGreaterThanOrEqual(1);
  });

  it("keeps the types of choices and flags", () => {
    show({});
    const criterion = field<HTMLSelectElement>("criterion");
    criterion.value = "1";
    fire(criterion, "change");
    const prune = field<HTMLInputElement>("prune");
    prune.checked = true;
    fire(prune, "change");
    expect(said).toEqual([
      ["criterion", "entropy", true],
      ["prune", true, true],
    ]);
  });

  it("takes a typed number, within the range", () => {
    show({ max_depth: 5 });
    const typed = field<HTMLInputElement>("max_depth-number");
    typed.value = "7.6";
    fire(typed, "input");
    fire(typed, "blur");
    typed.value = "1e9";
    fire(typed, "input");
    fire(typed, "blur");
    typed.value = "many";
    fire(typed, "input");
    fire(typed, "blur");
    expect(said.filter(([, , isSettled]) => isSettled)).toEqual([
      ["max_depth", 8, true],
      ["max_depth", 20, true],
    ]);
  });
});
