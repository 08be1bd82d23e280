import type { Leaderboard } from "../protocol";
import { rangeOf, readable } from "./numbers";

/** Learners, best first, with intervals drawn on a common scale. */
export function LeaderboardTable(props: {
  board: Leaderboard;
  onReport?: (learner: string) => void;
  isBusy?: boolean;
}) {
  const { board } = props;
  const finite = board.rows
    .flatMap((row) => [row.low, row.score, row.high])
    .filter(Number.isFinite);
  const [low, high] = rangeOf(finite);
  const span = high - low || 1;
  const hasNotes = board.rows.some((row) => row.note !== "");
  const place = (value: number) => 4 + (92 * (value - low)) / span;
  return (
    <div class="v-table-box board-box" data-testid="leaderboard">
      <table class="v-table board">
        <caption>{`Learners compared by ${board.score}`}</caption>
        <thead>
          <tr>
            <th scope="col">learner</th>
            <th scope="col" class="v-number">
              {board.score}
            </th>
            <th scope="col">interval</th>
            <th scope="col" class="v-number">
              seconds
            </th>
            {hasNotes && <th scope="col">remark</th>}
            {props.onReport && (
              <th scope="col">
                <span class="v-hidden">report</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {board.rows.map((row) => (
            <tr key={row.learner} class={row.learner === board.winner ? "is-chosen" : ""}>
              <th scope="row">
                {row.learner}
                {row.learner === board.winner && <span class="gains-chosen">winner</span>}
              </th>
              <td class="v-number">{readable(row.score)}</td>
              <td class="board-cell">
                <span class="board-interval">
                  {Number.isFinite(row.low) && (
                    <svg
                      class="board-bar"
                      viewBox="0 0 100 16"
                      preserveAspectRatio="none"
                      role="img"
                      aria-label={`from ${readable(row.low)} to ${readable(row.high)}`}
                    >
                      <rect
                        class="v-band c0"
                        x={place(row.low)}
                        width={Math.max(1, place(row.high) - place(row.low))}
                        y={3}
                        height={10}
                      />
                      <rect
                        class="v-bar c0"
                        x={place(row.score) - 0.9}
                        width={1.8}
                        y={0}
                        height={16}
                      />
                    </svg>
                  )}
                  <span class="board-ends v-number">{`${readable(row.low, 3)} to ${readable(row.high, 3)}`}</span>
                </span>
              </td>
              <td class="v-number">{readable(row.seconds, 2)}</td>
              {hasNotes && <td>{row.note}</td>}
              {props.onReport && (
                <td>
                  <button
                    type="button"
                    class="v-tool"
                    disabled={props.isBusy}
                    data-testid={`report-${row.learner}`}
                    onClick={() => props.onReport?.(row.learner)}
                  >
                    Report<span class="v-hidden">{` of ${row.learner}`}</span>
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
