import type { Figures, Task } from "../protocol";
import { formatError, formatNumber, formatSeconds, formatShare } from "../state/numbers";

export interface FiguresPanelProps {
  figures: Figures;
  task: Task;
  /** Without the certificate and the remarks: for several side by side. */
  compact?: boolean;
}

/** Errors, counts, what proves the answer, and what the fit warned of. */
export function FiguresPanel({ figures, task, compact }: FiguresPanelProps) {
  const isPlane = task === "classification";
  const show = (value: number | null) => {
    if (value === null) return "–";
    return isPlane ? formatShare(value) : formatError(value);
  };
  const named = isPlane ? "error" : "RMSE";
  return (
    <div class="figures-panel" data-testid="figures">
      <dl class="cards">
        <Card name={`Training ${named}`} value={show(figures.trainError)} testId="train-error" />
        <Card name={`Test ${named}`} value={show(figures.testError)} testId="test-error" />
        {figures.seconds > 0 && (
          <Card name="Fitted in" value={formatSeconds(figures.seconds)} testId="fit-seconds" />
        )}
        {figures.counts.map((count) => (
          <Card
            key={count.name}
            name={capital(count.name)}
            value={formatNumber(count.value)}
            testId={`count-${count.name.replaceAll(" ", "-")}`}
          />
        ))}
      </dl>
      {!compact && <Certificate lines={figures.certificate} />}
      {!compact && <Remarks remarks={figures.remarks} />}
    </div>
  );
}

function Card(props: { name: string; value: string; testId: string }) {
  return (
    <div class="card">
      <dt>{props.name}</dt>
      <dd class="figure-value" data-testid={props.testId}>
        {props.value}
      </dd>
    </div>
  );
}

function Certificate({ lines }: { lines: Figures["certificate"] }) {
  if (lines.length === 0) return null;
  return (
    <section class="certificate" data-testid="certificate" aria-label="Certificate">
      <h3>Certificate</h3>
      <ul>
        {lines.map((line) => (
          <li key={line.name} class={line.good ? "good" : "bad"}>
            <span class="mark" aria-hidden="true">
              {line.good ? "✓" : "!"}
            </span>
            <span class="certificate-name">
              {line.name}
              <span class="unseen">{line.good ? " (holds)" : " (does not hold)"}</span>
            </span>
            <span class="certificate-value">{line.value}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Remarks({ remarks }: { remarks: string[] }) {
  if (remarks.length === 0) return null;
  return (
    <ul class="remarks" data-testid="remarks" aria-label="Warnings of the fit">
      {remarks.map((remark) => (
        <li key={remark} class="note warning">
          {remark}
        </li>
      ))}
    </ul>
  );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
