import type { Steps } from "../../protocol";
import { readable } from "../../views/numbers";
import { asked } from "../../views/tree/nodeWords";

const AROUND = 3;

/** The figures of the steps around the current one. */
export function FiguresTable(props: {
  steps: Steps;
  number: number;
  onSeek: (number: number) => void;
}) {
  const { steps, number } = props;
  const names = namesOf(steps);
  if (names.length === 0) return null;
  const shown = stepsAround(number, steps.steps.length, AROUND);
  return (
    <div class="v-table-box" data-testid="step-figures">
      <table class="v-table">
        <caption>Figures of the steps</caption>
        <thead>
          <tr>
            <th scope="col">step</th>
            {names.map((name) => (
              <th key={name} scope="col" class="v-number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((own) => (
            <tr
              key={own}
              class={own === number ? "is-chosen" : ""}
              aria-current={own === number ? "step" : undefined}
            >
              <th scope="row">
                <button type="button" class="v-link" onClick={() => props.onSeek(own)}>
                  <span class="v-hidden">go to step </span>
                  {own}
                </button>
              </th>
              {names.map((name) => (
                <td key={name} class="v-number">
                  {told(steps.steps[own - 1]?.figures[name])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** All names, in the order in which they first appear. */
export function namesOf(steps: Pick<Steps, "steps">): string[] {
  return [...new Set(steps.steps.flatMap((own) => Object.keys(own.figures)))];
}

/** Always as many rows, so that the table does not jump: those around the current one. */
export function stepsAround(number: number, last: number, around: number): number[] {
  const count = Math.min(last, 2 * around + 1);
  const first = Math.min(Math.max(1, number - around), Math.max(1, last - count + 1));
  return Array.from({ length: count }, (_, k) => first + k);
}

function told(value: number | string | null | undefined): string {
  return typeof value === "string" ? asked(value) : readable(value);
}
