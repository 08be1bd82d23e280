import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, expect, it, vi } from "vitest";
import { BootstrapChart } from "./BootstrapChart";
import { CurvesChart } from "./CurvesChart";
import { GainsView } from "./GainsView";
import { HeatMap } from "./HeatMap";
import { ImpurityChart } from "./ImpurityChart";
import { LeaderboardTable } from "./LeaderboardTable";

const root = document.createElement("div");
document.body.append(root);
afterEach(() => render(null, root));

const label = (selector: string) => root.querySelector(selector)?.getAttribute("aria-label");

it("curves say their values at the cursor, and gaps are left out", () => {
  const curves = [{ name: "gap", values: new Float32Array([1, Number.NaN, 0.25, 0]) }];
  act(() =>
    render(<CurvesChart title="Over the steps" curves={curves} scale="log" cursor={2} />, root),
  );
  expect(label("svg[role=img]")).toBe("Over the steps. At step 2: gap 0.25.");
  expect(root.querySelector(".v-chart path")?.getAttribute("d")?.match(/M/g)).toHaveLength(2);
  act(() => root.querySelector<HTMLButtonElement>("[data-testid=curves-linear]")?.click());
  expect(root.innerHTML).not.toContain("NaN");
});

it("gains have the chosen question marked and a curve for thresholds", () => {
  const candidate = { thresholds: null, gains: null };
  const gains = {
    node: 3,
    criterion: "gini",
    candidates: [
      { ...candidate, feature: "Wind", question: "Wind = ?", gain: 0.05, isChosen: false },
      {
        feature: "x1",
        question: "x1 <= 2",
        gain: 0.2,
        isChosen: true,
        thresholds: new Float32Array([1, 2, 3]),
        gains: new Float32Array([0.1, 0.2, 0.05]),
      },
    ],
  };
  act(() => render(<GainsView gains={gains} />, root));
  expect(root.querySelector("tr.is-chosen")?.textContent).toContain("x1 ≤ 2");
  expect(root.querySelectorAll("[data-testid=gain-curve]")).toHaveLength(1);
  expect(label("[data-testid=gain-curve] svg")).toContain("highest, 0.2, at 2");
});

it("a cell of the map is chosen by click and by Enter, and arrows lead to its neighbours", () => {
  const map = {
    C: [1, 10],
    gamma: [0.1, 1],
    score: { values: new Float32Array([0.5, 0.6, 0.7, 0.9]), shape: [2, 2] as [number, number] },
    best: { C: 10, gamma: 1, score: 0.9 },
    folds: 5,
  };
  const onChoose = vi.fn();
  act(() => render(<HeatMap map={map} chosen={null} onChoose={onChoose} />, root));
  const best = root.querySelector<SVGGElement>("[tabindex='0'][role=gridcell]")!;
  expect(best.getAttribute("aria-label")).toBe("C = 10, gamma = 1: accuracy 90.0 %, the best");
  const press = (element: Element, key: string) =>
    act(() => {
      element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    });
  press(best, "ArrowLeft");
  const next = root.querySelector("[tabindex='0'][role=gridcell]")!;
  press(next, "Enter");
  expect(onChoose).toHaveBeenCalledWith(1, 1);
});

it("the winner is marked and scores that could not be had leave a dash", () => {
  const rows = [
    { learner: "svm", score: 0.9, low: 0.85, high: 0.95, seconds: 0.1, note: "" },
    {
      learner: "tree",
      score: Number.NaN,
      low: Number.NaN,
      high: Number.NaN,
      seconds: 3,
      note: "no time",
    },
  ];
  const board = { score: "accuracy", winner: "svm", rows };
  const onReport = vi.fn();
  act(() => render(<LeaderboardTable board={board} onReport={onReport} />, root));
  expect(root.querySelector("tr.is-chosen")?.textContent).toContain("winner");
  expect(root.innerHTML).not.toContain("NaN");
  act(() => root.querySelector<HTMLButtonElement>("[data-testid=report-tree]")?.click());
  expect(onReport).toHaveBeenCalledWith("tree");
});

it("histograms and impurities are said in a sentence", () => {
  const bootstrap = {
    estimate: 4.25,
    low: 3,
    high: 6,
    standardError: 0.8,
    edges: new Float32Array([3, 4, 5, 6]),
    counts: new Float32Array([10, 30, 5]),
  };
  act(() => render(<BootstrapChart bootstrap={bootstrap} statistic="median" />, root));
  expect(label("svg[role=img]")).toContain("95 % interval from 3 to 6");
  const shares = new Float32Array([0, 0.5, 1]);
  const curves = [{ name: "gini", values: new Float32Array([0, 0.5, 0]), at: 0.375 }];
  const onShare = vi.fn();
  act(() =>
    render(<ImpurityChart impurity={{ shares, curves }} share={0.25} onShare={onShare} />, root),
  );
  expect(label("svg[role=img]")).toContain("gini 0.375");
});
