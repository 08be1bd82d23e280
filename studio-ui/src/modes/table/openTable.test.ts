import { beforeEach, expect, it, vi } from "vitest";

const { ask, uploadTable, Superseded } = vi.hoisted(() => ({
  ask: vi.fn(),
  uploadTable: vi.fn(),
  Superseded: class extends Error {},
}));
vi.mock("../../shell", async () => {
  const { signal } = await import("@preact/signals");
  return {
    ask,
    uploadTable,
    isSuperseded: (error: unknown) => error instanceof Superseded,
    welcome: signal(null),
    mode: signal("playground"),
    openMode: vi.fn(),
  };
});

import type { Task } from "../../protocol";
import { openMode, welcome } from "../../shell";
import { busy, openNamedFile, openTable, readTable, sendTable } from "./openTable";
import { chosenFeatures, isValue } from "./TableChoices";

const column = (name: string) => ({
  name,
  type: "number",
  task: "classification" as Task,
  distinct: 2,
  missing: 0,
  examples: [],
});
const table = {
  table: "t1",
  name: "a.csv",
  rows: 3,
  columns: [column("x"), column("y")],
  findings: [],
};

beforeEach(() => {
  ask.mockReset();
  uploadTable.mockReset();
});

it("opens a table with the guessed target, or with the last column", async () => {
  ask.mockResolvedValue({ ...table, target: "x" });
  await readTable("file");
  expect(openTable.value).toMatchObject({ target: "x", busy: null, error: null });
  ask.mockResolvedValue({ ...table, target: null });
  await readTable("file");
  expect(openTable.value.target).toBe("y");
});

it("tells what went wrong, and nothing of what was cancelled", async () => {
  ask.mockRejectedValue(new Error("not a table"));
  await readTable("t1");
  expect(openTable.value.error?.message).toBe("not a table");
  await busy("comparing", () => Promise.reject(new Superseded()));
  expect(openTable.value).toMatchObject({ error: null, busy: null });
});

it("reads what was sent, and does not read what could not be sent", async () => {
  uploadTable.mockResolvedValue("t7");
  ask.mockResolvedValue({ ...table, target: "x" });
  await sendTable(new File(["x,y"], "a.csv"));
  expect(ask).toHaveBeenCalledWith({ kind: "table", table: "t7" }, expect.anything());
  ask.mockReset();
  uploadTable.mockRejectedValue(new Error("too large"));
  await sendTable(new File(["x,y"], "a.csv"));
  expect(ask).not.toHaveBeenCalled();
  expect(openTable.value.error?.message).toBe("too large");
});

it("opens the table of the command line once for each server", () => {
  const stop = openNamedFile();
  const told = { kind: "welcome" as const, key: "k", server: "s1", version: "1", file: "a.csv" };
  welcome.value = told;
  welcome.value = { ...told };
  expect(openMode).toHaveBeenCalledTimes(1);
  welcome.value = { ...told, server: "s2" };
  expect(openMode).toHaveBeenCalledTimes(2);
  welcome.value = { ...told, server: "s3", file: null };
  expect(openMode).toHaveBeenCalledTimes(2);
  stop();
});

it("axes are two different columns, or both principal components", () => {
  const names = ["a", "b", "c"];
  expect(chosenFeatures(null, 0, "b", names)).toEqual(["b", "a"]);
  expect(chosenFeatures(["a", "b"], 1, "c", names)).toEqual(["a", "c"]);
  expect(chosenFeatures(["a", "b"], 0, "b", names)).toEqual(["b", "a"]);
  expect(chosenFeatures(["a", "b"], 0, "", names)).toBeNull();
  expect(chosenFeatures(null, 0, "a", ["a"])).toBeNull();
});

it("knows targets that are predicted as numbers, as the library does", () => {
  const columns = [column("x"), { ...column("y"), task: "regression" as Task }];
  const own = { ...table, columns, target: null };
  expect(["x", "y", "z", null].map((name) => isValue(own, name))).toEqual([
    false,
    true,
    false,
    false,
  ]);
});
