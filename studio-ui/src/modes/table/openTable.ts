import { effect, signal } from "@preact/signals";
import type { Leaderboard, Progress, Table } from "../../protocol";
import { ask, isSuperseded, mode, openMode, uploadTable, welcome } from "../../shell";

/** The table that is open, and what was found out about it; kept while other modes are open. */
export interface OpenTable {
  table: Table | null;
  target: string | null;
  /** Null: principal components. */
  features: [string, string] | null;
  board: Leaderboard | null;
  /** The report that was written last, and whether a tab shows it. */
  report: { name: string; learner: string; isOpen: boolean } | null;
  /** What is being done: sending, reading, comparing. */
  busy: string | null;
  progress: Pick<Progress, "note" | "done" | "total"> | null;
  error: Error | null;
}

const NOTHING: OpenTable = {
  table: null,
  target: null,
  features: null,
  board: null,
  report: null,
  busy: null,
  progress: null,
  error: null,
};

export const openTable = signal<OpenTable>(NOTHING);

export function change(part: Partial<OpenTable>): void {
  openTable.value = { ...openTable.value, ...part };
}

/** Does something that takes a while; what went wrong is kept for the page to tell. */
export async function busy<Value>(
  what: string,
  work: (onProgress: (progress: Progress) => void) => Promise<Value>,
): Promise<Value | null> {
  change({ busy: what, error: null, progress: null });
  try {
    return await work((progress) => change({ progress }));
  } catch (error) {
    if (!isSuperseded(error)) change({ error: error as Error });
    return null;
  } finally {
    change({ busy: null, progress: null });
  }
}

export async function readTable(name: string): Promise<void> {
  openTable.value = { ...NOTHING };
  const table = await busy("reading", (onProgress) =>
    ask({ kind: "table", table: name }, { channel: "table", onProgress }),
  );
  if (table) change({ table, target: table.target ?? table.columns.at(-1)?.name ?? null });
}

export async function sendTable(file: File): Promise<void> {
  openTable.value = { ...NOTHING };
  const name = await busy("sending", () =>
    uploadTable(file, (done, total) =>
      change({ progress: { note: `sending ${file.name}`, done, total } }),
    ),
  );
  if (name) await readTable(name);
}

const SHOWN = "margrove-studio-file";

/** `margrove studio FILE` opens that table by itself, once for each start of the server. */
export function openNamedFile(): () => void {
  return effect(() => {
    const told = welcome.value;
    if (!told?.file) return;
    const { server } = told;
    if (window.sessionStorage.getItem(SHOWN) === server) return;
    window.sessionStorage.setItem(SHOWN, server);
    if (mode.peek() === "playground") openMode("table");
  });
}
