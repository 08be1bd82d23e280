import type { Table } from "../../protocol";

const ORDER = { critical: 0, warning: 1, info: 2 } as const;

/** What the doctor found, worst first. */
export function Findings(props: { findings: Table["findings"] }) {
  if (props.findings.length === 0) {
    return (
      <p class="finding is-good" data-testid="findings">
        <span class="finding-badge">fine</span>
        <span>The doctor found nothing to worry about.</span>
      </p>
    );
  }
  const sorted = [...props.findings].sort((a, b) => ORDER[a.severity] - ORDER[b.severity]);
  return (
    <ul class="findings" data-testid="findings" aria-label="What the doctor found">
      {sorted.map((own) => (
        <li key={`${own.title}-${own.text}`} class={`finding is-${own.severity}`}>
          <span class="finding-badge">{own.severity}</span>
          <span>
            <b>{own.title}</b>
            {own.text && ` ${own.text}`}
          </span>
        </li>
      ))}
    </ul>
  );
}
