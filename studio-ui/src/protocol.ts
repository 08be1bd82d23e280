/**
 * What the page and the library say to each other, over one WebSocket.
 *
 * The page sends text: one JSON object, a `Request` each. The library answers a request with any
 * number of `progress` and then one of `result`, `error` or `cancelled`, all with its `id`.
 *
 * A newer request on a channel replaces an older one: what waits is dropped, what runs is cancelled
 * between two slices, and the older one is answered by `cancelled`. Channels are independent.
 *
 * A `result` comes as a binary frame, everything else as text. A binary frame is
 *
 *     uint32, little-endian   length of the header in bytes
 *     header                  UTF-8, JSON: a `ResultHeader`
 *     zero to seven bytes     up to a multiple of 8
 *     arrays                  one after the other, each at its offset from here (multiples of 8)
 *
 * and `body` is the answer, in which an array stands as {"array": "its name"}. The page puts typed
 * arrays in these places, so that the interfaces below say `Float32Array`.
 */

export type Task = "classification" | "regression";

// -- the beginning ------------------------------------------------------------------------------

/** The first message, before anything else: the token of the link, or the key of this tab. */
export interface Hello {
  kind: "hello";
  token?: string;
  key?: string;
}

/** `server` is another one after each start; `file` names a table given on the command line. */
export interface Welcome {
  kind: "welcome";
  key: string;
  server: string;
  version: string;
  file: string | null;
}

/** Followed by the end of the connection. */
export interface Refused {
  kind: "refused";
  reason: string;
}

export interface Progress {
  kind: "progress";
  id: number;
  channel: string;
  /** "fitting", "compiling, on the first run only", "reading", ... */
  note: string;
  done: number;
  total: number | null;
}

export interface Failure {
  kind: "error";
  id: number;
  channel: string;
  message: string;
}

export interface Cancelled {
  kind: "cancelled";
  id: number;
  channel: string;
}

export interface ResultHeader {
  kind: "result";
  id: number;
  channel: string;
  body: unknown;
  arrays: Record<string, { dtype: "f4" | "f8" | "i4" | "u1"; shape: number[]; offset: number }>;
}

/**
 * A grid of values: row by row from the bottom of the view up, `shape` is [rows, columns]. They are
 * those at the middles of equal cells, which fill the view.
 */
export interface Grid {
  values: Float32Array;
  shape: [number, number];
}

// -- scenes -------------------------------------------------------------------------------------

/** All that a picture depends on; what is saved and loaded as JSON. */
export interface Scene {
  version: 1;
  task: Task;
  /** n points: two coordinates, or one for regression. */
  x: number[][];
  /** Their classes 0 to 3, or their values. */
  y: number[];
  /** The share of the points that is kept for testing, and drawn as rings: 0 to 0.5. */
  testShare: number;
  seed: number;
  view: View;
  features: [string, string];
  target: string;
  /** Names of the classes. */
  classes: string[];
  learner: string;
  parameters: Record<string, Value>;
}

export interface View {
  x: [number, number];
  y: [number, number];
}

export type Value = number | string | boolean | null;

// -- menus, made from the library's registries --------------------------------------------------

export interface Catalogue {
  learners: Learner[];
  presets: Preset[];
  lessons: Lesson[];
  /** The tables that the lectures grow trees on. */
  tables: { name: string; title: string }[];
}

export interface Learner {
  /** The estimator's name in margrove. */
  name: string;
  title: string;
  summary: string;
  family: "margin" | "tree" | "ensemble";
  task: Task;
  parameters: Parameter[];
  /** What its step mode shows; empty without one. */
  steps: StepKind[];
}

export interface Parameter {
  name: string;
  title: string;
  summary: string;
  kind: "number" | "integer" | "choice" | "flag";
  default: Value;
  /** Of numbers. */
  scale?: "linear" | "log";
  low?: number;
  high?: number;
  /** Of choices. */
  choices?: { value: Value; title: string }[];
  /** Whether null may be chosen, and what that means ("no limit"). */
  none?: string;
  /** Shown only while another parameter has one of these values. */
  when?: { name: string; values: Value[] };
}

export interface Preset {
  name: string;
  title: string;
  summary: string;
  task: Task;
  /** Whether size and noise can be chosen, or it is a fixed set of points. */
  isDrawn: boolean;
  size: number;
  noise: number;
}

export interface Lesson {
  name: string;
  title: string;
  /** A few sentences each. */
  paragraphs: string[];
  /** Which picture stands beside the text. */
  stage: "playground" | "steps" | "compare" | "map" | "tree" | "impurity" | "bootstrap";
  /** For all stages with points. */
  scene: Scene | null;
  /** Further learners of a comparison. */
  others: { learner: string; parameters: Record<string, Value> }[];
  /** For "steps", and "tree": a table of the lectures. */
  steps: StepKind | null;
  table: string | null;
  question: string;
  /** Empty: the answer is a number to type. */
  choices: string[];
  /** What is resampled, for "bootstrap". */
  values: number[];
  hint: string;
}

// -- requests -----------------------------------------------------------------------------------

export type Ask =
  | { kind: "catalogue" }
  | { kind: "points"; preset: string; size: number; noise: number; seed: number }
  | { kind: "picture"; scene: Scene; grid: [number, number]; surface: "score" | "probability" }
  | { kind: "steps"; steps: StepKind; scene: Stepped }
  | { kind: "step"; steps: StepKind; scene: Stepped; number: number; grid: [number, number] }
  | { kind: "map"; scene: Scene }
  | { kind: "tree"; source: TreeSource; member: number }
  | { kind: "follow"; source: TreeSource; member: number; row: number }
  | { kind: "impurity"; share: number }
  | { kind: "bootstrap"; values: number[]; statistic: "median" | "mean"; resamples: number; seed: number }
  | { kind: "check"; lesson: string; answer: string; scene: Scene | null }
  | { kind: "code"; scene: Scene }
  | { kind: "table"; table: string }
  | { kind: "table-scene"; table: string; target: string; features: [string, string] | null; rows: number; seed: number }
  | { kind: "table-compare"; table: string; target: string; seconds: number }
  | { kind: "table-report"; table: string; target: string; learner: string }
  | { kind: "cancel" };

export type Request = Ask & { id: number; channel: string };

/** What can be stepped through: points, or a table of the lectures (by splits). */
export type Stepped = Scene | { lecture: string };

/** A tree, or one of the trees of an ensemble: fitted to a scene, or to a table of the lectures. */
export type TreeSource = { scene: Scene } | { lecture: string; parameters: Record<string, Value> };

/** Answer to "points": these fields of a scene. */
export type Points = Pick<Scene, "task" | "x" | "y" | "view" | "features" | "target" | "classes">;

// -- pictures -----------------------------------------------------------------------------------

export interface Picture {
  task: Task;
  /** Which points were kept for testing. */
  isTest: Uint8Array;
  figures: Figures;
  plane: Plane | null;
  curve: Curve | null;
}

export interface Figures {
  /** Shares of mistakes, or root mean squared errors; null where there is nothing to judge. */
  trainError: number | null;
  testError: number | null;
  /** Of the fit. */
  seconds: number;
  /** "support vectors": 12, "leaves": 5, ... */
  counts: { name: string; value: number }[];
  /** What proves the answer: sentences and numbers, worst first. */
  certificate: { name: string; value: string; good: boolean }[];
  /** Warnings of the fit. */
  remarks: string[];
}

/** What two features give. */
export interface Plane {
  /**
   * Two classes: the score (0 on the boundary, -1 and 1 on the margins of a margin machine) or the
   * probability of the second of `classes`. More: how sure the learner is of the class there, 0 to 1.
   */
  surface: Grid;
  /** The range that colours should span, symmetric for scores. */
  low: number;
  high: number;
  kind: "score" | "probability" | "confidence";
  /** The predicted class of each cell, as an index into the scene's classes. */
  winner: { values: Uint8Array; shape: [number, number] };
  /** The classes that were learnt, as indices into the scene's classes. */
  classes: number[];
  /** Whether -1 and 1 of the surface are the margins. */
  hasMargins: boolean;
  /** One each for all points of the scene, test points included; null where it means nothing. */
  alpha: Float32Array | null;
  slack: Float32Array | null;
  /** 0 none, 1 on the margin, 2 inside the margin on the right side, 3 on the wrong side. */
  supportKind: Uint8Array | null;
  /** Weight of each point in the last boosting round, 1 on average. */
  weight: Float32Array | null;
  hulls: Hulls | null;
  /** Of one tree: rectangles within the view. */
  regions: { x: [number, number]; y: [number, number]; class: number }[];
  /** Boundaries of the members of an ensemble: the classes of a coarser grid, a member each. */
  members: { values: Uint8Array; shape: [number, number, number] } | null;
}

export interface Hulls {
  /** Corners of the hull of each of the two classes. */
  corners: [number[][], number[][]];
  /** The nearest points of the two. */
  nearest: [number[], number[]];
  distance: number;
}

/** What one feature gives: regression. */
export interface Curve {
  x: Float32Array;
  y: Float32Array;
  /** A band around it (a forest's spread, the tube of an SVR), or null. */
  low: Float32Array | null;
  high: Float32Array | null;
  band: string;
  supportKind: Uint8Array | null;
  alpha: Float32Array | null;
  /** y minus the curve, of each point. */
  residual: Float32Array;
  /** Single trees behind an ensemble. */
  members: { values: Float32Array; shape: [number, number] } | null;
}

// -- step mode ----------------------------------------------------------------------------------

export type StepKind =
  | "perceptron"
  | "smo"
  | "subgradient"
  | "hull"
  | "splits"
  | "pruning"
  | "members"
  | "adaboost"
  | "gradient";

/** All steps of one fit. Number 0 is the state before the first of them. */
export interface Steps {
  kind: StepKind;
  title: string;
  /** What a step is, in a sentence. */
  summary: string;
  /** Each with a sentence that says what happened, and figures for the table. */
  steps: { text: string; figures: Record<string, number | string | null> }[];
  /** How many steps the fit took, if not all are shown. */
  total: number;
  /** Curves over the steps, each with a value for 0, 1, ..., steps.length (NaN where none). */
  curves: { name: string; values: Float32Array }[];
  /** "log" for objectives and bounds that fall by orders of magnitude. */
  scale: "linear" | "log";
}

/** The state after step `number`. */
export interface Step {
  number: number;
  /** What is learnt so far, where that can be drawn. */
  plane: Plane | null;
  curve: Curve | null;
  /** Which points were kept for testing. */
  isTest: Uint8Array;
  /** Points that this step is about, and what is the matter with them: "on this branch". */
  highlighted: number[];
  highlights: string;
  /** Lines w.x + b = 0: before the step (faint) and after; arrows from the origin are w. */
  lines: { weights: [number, number]; intercept: number; role: "before" | "after" | "average" }[];
  /** The clipping box of a pair of SMO. */
  box: SmoBox | null;
  /** The gains of the candidates at the node that is split: a table, and a curve each. */
  gains: Gains | null;
  /** For trees. */
  tree: Tree | null;
}

export interface SmoBox {
  first: number;
  second: number;
  signs: [number, number];
  bounds: [number, number];
  before: [number, number];
  after: [number, number];
  unclipped: number;
  low: number;
  high: number;
  /** Ends of the line that the pair may move on, within the box. */
  line: [[number, number], [number, number]];
}

export interface Gains {
  node: number;
  criterion: string;
  candidates: {
    feature: string;
    /** What is asked: "x1 <= 0.31", "Outlook = ?" */
    question: string;
    gain: number;
    isChosen: boolean;
    thresholds: Float32Array | null;
    gains: Float32Array | null;
  }[];
}

// -- trees --------------------------------------------------------------------------------------

/** Nodes in the order of their numbers: 0 is the root, a parent comes before its children. */
export interface Tree {
  /** How many trees the model has, and which this is. */
  members: number;
  member: number;
  /** Class names; empty for regression. */
  classes: string[];
  nodes: TreeNode[];
  /** Names of the rows' columns and their values as text, for tables of the lectures. */
  table: { columns: string[]; rows: string[][]; target: string[] } | null;
}

export interface TreeNode {
  id: number;
  parent: number;
  /** What the branch from the parent says: "yes", "no", "Sunny"; empty at the root. */
  branch: string;
  /** What an inner node asks; empty at leaves. */
  question: string;
  /** What it answers: a class, or a number as text. */
  answer: string;
  rows: number;
  /** null where the tree does not keep it. */
  impurity: number | null;
  /** Of the classes; empty for regression. */
  shares: number[];
}

/** Answer to "follow": the nodes that a row visits, from the root to its leaf. */
export interface Followed {
  nodes: number[];
}

// -- further answers ----------------------------------------------------------------------------

/** Answer to "map": cross-validated accuracy of each (C, gamma); rows are gammas. */
export interface TuningMap {
  C: number[];
  gamma: number[];
  score: Grid;
  best: { C: number; gamma: number; score: number };
  folds: number;
}

/** Answer to "impurity": curves over the share of one of two classes, and their values at `share`. */
export interface Impurity {
  shares: Float32Array;
  curves: { name: string; values: Float32Array; at: number }[];
}

export interface Bootstrap {
  estimate: number;
  low: number;
  high: number;
  standardError: number;
  edges: Float32Array;
  counts: Float32Array;
}

export interface Checked {
  isRight: boolean;
  /** Why, with the number as the library computed it. */
  text: string;
}

export interface Code {
  python: string;
}

/** Answer to "table"; the name of a table is what the upload answered, or "file". */
export interface Table {
  table: string;
  name: string;
  rows: number;
  columns: {
    name: string;
    type: string;
    /** What predicting it would be. */
    task: Task;
    distinct: number;
    missing: number;
    examples: string[];
  }[];
  /** A guess. */
  target: string | null;
  /** Findings of the doctor. */
  findings: { severity: "info" | "warning" | "critical"; title: string; text: string }[];
}

/** Answer to "table-compare". */
export interface Leaderboard {
  score: string;
  winner: string;
  rows: { learner: string; score: number; low: number; high: number; seconds: number; note: string }[];
}

/** Answer to "table-report": open `/reports/<report>`. */
export interface Report {
  report: string;
}
