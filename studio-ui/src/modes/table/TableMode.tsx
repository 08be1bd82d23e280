import { useEffect, useState } from "preact/hooks";
import { ask, cancel, ErrorNote, openMode, replaceScene, welcome } from "../../shell";
import { LeaderboardTable } from "../../views/LeaderboardTable";
import { ColumnsTable } from "./ColumnsTable";
import { FileDrop } from "./FileDrop";
import { Findings } from "./Findings";
import { busy, change, openTable, readTable, sendTable } from "./openTable";
import { TableChoices } from "./TableChoices";

const ROWS = 2000; // that the playground can be asked to draw and fit as one moves a slider

/** A table of one's own: what is in it, a look at it in the playground, and which learner suits it. */
export function TableMode() {
  const { table, target, features, board, error } = openTable.value;
  const file = welcome.value?.file ?? null;
  useEffect(() => {
    const { table: known, busy: what } = openTable.peek();
    if (file && !known && !what) void readTable("file");
  }, [file]);
  const isBusy = openTable.value.busy !== null;
  return (
    <div class="mode mode-table">
      <FileDrop isBusy={isBusy} hasTable={table !== null} onFile={(own) => void sendTable(own)} />
      <Working />
      <ErrorNote error={error} />
      {table && (
        <>
          <section class="table-section" aria-label="Explore">
            <TableChoices table={table} />
            <div class="v-row">
              <button
                type="button"
                class="v-tool is-main"
                disabled={isBusy || !target}
                data-testid="explore"
                onClick={() => void explore()}
              >
                Explore in the playground
              </button>
              <CompareButton isBusy={isBusy || !target} />
            </div>
            {table.rows > ROWS && (
              <p class="v-faint">{`The playground shows ${ROWS.toLocaleString("en")} rows, drawn at random; the comparison uses as many as fit its time.`}</p>
            )}
          </section>
          {board && (
            <section class="table-section" aria-label="Comparison">
              <LeaderboardTable
                board={board}
                isBusy={isBusy}
                onReport={(learner) => void report(learner)}
              />
              <ReportLink />
            </section>
          )}
          <section class="table-section is-split" aria-label="The table">
            <Findings findings={table.findings} />
            <ColumnsTable table={table} target={target} features={features} />
          </section>
        </>
      )}
    </div>
  );
}

function Working() {
  const { busy: what, progress } = openTable.value;
  if (!what) return null;
  const note = progress?.note ?? what;
  return (
    <div class="table-working" role="status" data-testid="table-working">
      <span>{note}</span>
      {progress?.total ? (
        <progress value={progress.done} max={progress.total} aria-label={note} />
      ) : (
        <progress aria-label={note} />
      )}
      {what !== "sending" && (
        <button
          type="button"
          class="v-tool"
          data-testid="table-cancel"
          onClick={() => cancel("table")}
        >
          Cancel
        </button>
      )}
    </div>
  );
}

function CompareButton(props: { isBusy: boolean }) {
  const [seconds, setSeconds] = useState(30);
  return (
    <span class="v-row compare-button">
      <button
        type="button"
        class="v-tool"
        disabled={props.isBusy}
        data-testid="table-compare"
        onClick={() => void compare(seconds)}
      >
        Compare learners
      </button>
      <label class="v-inline">
        <span>for at most</span>
        <select
          value={String(seconds)}
          data-testid="table-seconds"
          onChange={(event) => setSeconds(Number(event.currentTarget.value))}
        >
          {[10, 30, 60, 300].map((own) => (
            <option key={own} value={String(own)}>{`${own} seconds`}</option>
          ))}
        </select>
      </label>
    </span>
  );
}

/** Windows that open late are held back by browsers: the link stays, to be clicked. */
function ReportLink() {
  const { report: made } = openTable.value;
  if (!made) return null;
  return (
    <p class="v-row report-ready" role="status">
      <span>
        {made.isOpen
          ? `The report of ${made.learner} is open in another tab.`
          : `The report of ${made.learner} is ready.`}
      </span>
      <a
        class={made.isOpen ? "v-tool" : "v-tool is-main"}
        href={addressOf(made.name)}
        target="_blank"
        rel="noopener"
        data-testid="report-link"
        onClick={() => change({ report: { ...made, isOpen: true } })}
      >
        {made.isOpen ? "Open it again" : "Open the report"}
      </a>
    </p>
  );
}

function addressOf(report: string): string {
  return `/reports/${encodeURIComponent(report)}`;
}

/** Whether the browser let it open. Its way back to this page is cut before anything is in it. */
function openTab(address: string): boolean {
  const tab = window.open(address, "_blank");
  if (!tab) return false;
  tab.opener = null;
  return true;
}

async function explore(): Promise<void> {
  const { table, target, features } = openTable.value;
  if (!table || !target) return;
  const scene = await busy("drawing rows", (onProgress) =>
    ask(
      { kind: "table-scene", table: table.table, target, features, rows: ROWS, seed: 0 },
      { channel: "table", onProgress },
    ),
  );
  if (!scene) return;
  replaceScene(scene);
  openMode("playground");
}

async function compare(seconds: number): Promise<void> {
  const { table, target } = openTable.value;
  if (!table || !target) return;
  change({ board: null, report: null });
  const board = await busy("comparing learners", (onProgress) =>
    ask(
      { kind: "table-compare", table: table.table, target, seconds },
      { channel: "table", onProgress },
    ),
  );
  if (board) change({ board });
}

async function report(learner: string): Promise<void> {
  const { table, target } = openTable.value;
  if (!table || !target) return;
  change({ report: null });
  const made = await busy("writing the report", (onProgress) =>
    ask(
      { kind: "table-report", table: table.table, target, learner },
      { channel: "table", onProgress },
    ),
  );
  if (!made) return;
  change({ report: { name: made.report, learner, isOpen: openTab(addressOf(made.report)) } });
}
