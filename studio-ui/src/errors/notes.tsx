import { Component, type ComponentChildren } from "preact";
import type { Progress } from "../protocol";

export type NoteKind = "info" | "good" | "warning" | "critical";

/** A sentence that stands out. */
export function Note(props: {
  kind?: NoteKind;
  title?: string;
  children: ComponentChildren;
  testId?: string;
}) {
  const kind = props.kind ?? "info";
  return (
    <div
      class={`note ${kind}`}
      role={kind === "critical" ? "alert" : "status"}
      data-testid={props.testId}
    >
      {props.title && <strong>{props.title}</strong>}
      <span>{props.children}</span>
    </div>
  );
}

/** What the library said was wrong; nothing without an error. */
export function ErrorNote({ error }: { error: Error | null }) {
  if (!error) return null;
  return (
    <Note kind="critical" testId="error">
      {error.message}
    </Note>
  );
}

/** What is being done and how far it is; nothing without progress. */
export function ProgressNote({ progress }: { progress: Progress | null }) {
  if (!progress) return null;
  const { done, total } = progress;
  return (
    <div class="progress" role="status" data-testid="progress">
      <span>{total ? `${progress.note} (${done} of ${total})` : progress.note}</span>
      {total ? (
        <progress value={done} max={total} aria-label={progress.note} />
      ) : (
        <progress aria-label={progress.note} />
      )}
    </div>
  );
}

/** Keeps a mistake in one part of the page from taking the others along. */
export class Fence extends Component<
  { name: string; children: ComponentChildren },
  { error: Error | null }
> {
  override state: { error: Error | null } = { error: null };

  static override getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidCatch(error: Error): void {
    console.error(error);
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <div class="panel">
        <Note kind="critical" title={`The ${this.props.name} could not be drawn.`} testId="fence">
          {this.state.error.message}
        </Note>
        <button type="button" class="tool" onClick={() => this.setState({ error: null })}>
          Try again
        </button>
      </div>
    );
  }
}
