import { useMemo, useState } from "preact/hooks";
import { ErrorNote, useAnswer } from "../../shell";
import { BootstrapChart } from "../../views/BootstrapChart";
import { SlowProgress } from "../SlowProgress";
import { numbersIn } from "./bootstrapValues";

/** Resampling a few numbers. */
export function BootstrapStage(props: { values: number[] }) {
  const [text, setText] = useState(() => props.values.join(", "));
  const [statistic, setStatistic] = useState<"median" | "mean">("median");
  const [resamples, setResamples] = useState(2000);
  const [seed, setSeed] = useState(0);
  const values = useMemo(() => numbersIn(text), [text]);
  const request = useMemo(
    () =>
      values && values.length >= 2
        ? { kind: "bootstrap" as const, values, statistic, resamples, seed }
        : null,
    [values, statistic, resamples, seed],
  );
  const answer = useAnswer<"bootstrap">(request, "bootstrap");
  return (
    <div class="v-stack" data-testid="bootstrap-stage">
      <label class="v-field">
        <span>Values</span>
        <textarea
          rows={2}
          value={text}
          aria-invalid={values === null}
          data-testid="bootstrap-values"
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      {(values === null || values.length < 2) && (
        <p class="v-faint" role="status">
          Two numbers or more, with commas between them.
        </p>
      )}
      <div class="v-row">
        <label class="v-field">
          <span>Statistic</span>
          <select
            value={statistic}
            data-testid="bootstrap-statistic"
            onChange={(event) =>
              setStatistic(event.currentTarget.value === "mean" ? "mean" : "median")
            }
          >
            <option value="median">median</option>
            <option value="mean">mean</option>
          </select>
        </label>
        <label class="v-field">
          <span>Resamples</span>
          <select
            value={String(resamples)}
            data-testid="bootstrap-resamples"
            onChange={(event) => setResamples(Number(event.currentTarget.value))}
          >
            {[20, 100, 500, 2000, 10000].map((count) => (
              <option key={count} value={String(count)}>
                {count.toLocaleString("en")}
              </option>
            ))}
          </select>
        </label>
        <button
          type="button"
          class="v-tool"
          data-testid="bootstrap-again"
          onClick={() => setSeed(seed + 1)}
        >
          Draw again
        </button>
      </div>
      <ErrorNote error={answer.error} />
      <SlowProgress progress={answer.progress} isWaiting={answer.isWaiting} />
      {answer.value && <BootstrapChart bootstrap={answer.value} statistic={statistic} />}
    </div>
  );
}
