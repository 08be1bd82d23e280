import type * as P from "../protocol";

/** What each kind of request is answered by. */
export interface Answers {
  catalogue: P.Catalogue;
  points: P.Points;
  picture: P.Picture;
  steps: P.Steps;
  step: P.Step;
  map: P.TuningMap;
  tree: P.Tree;
  follow: P.Followed;
  impurity: P.Impurity;
  bootstrap: P.Bootstrap;
  check: P.Checked;
  code: P.Code;
  table: P.Table;
  "table-scene": P.Scene;
  "table-compare": P.Leaderboard;
  "table-report": P.Report;
}

export type AskKind = keyof Answers;
export type AskOf<Kind extends AskKind> = Extract<P.Ask, { kind: Kind }>;

/** The library refused or failed; the message is for the user. */
export class AskError extends Error {}

/** A newer request took the channel, or somebody cancelled. */
export class Superseded extends Error {
  constructor() {
    super("replaced by a newer request");
  }
}

export function isSuperseded(error: unknown): boolean {
  return error instanceof Superseded;
}
