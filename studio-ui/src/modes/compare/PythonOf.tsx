import { useMemo, useState } from "preact/hooks";
import type { Scene } from "../../protocol";
import { ErrorNote, useAnswer } from "../../shell";
import { CodeBlock } from "../../views/CodeBlock";

/** A learner on these points as a program; asked for when somebody wants to see it. */
export function PythonOf(props: { scene: Scene; channel: string; name: string }) {
  const [isOpen, setIsOpen] = useState(false);
  const request = useMemo(
    () => (isOpen ? { kind: "code" as const, scene: props.scene } : null),
    [isOpen, props.scene],
  );
  const answer = useAnswer<"code">(request, props.channel);
  return (
    <details
      class="v-details"
      data-testid={`${props.name}-python`}
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
    >
      <summary>As Python</summary>
      <ErrorNote error={answer.error} />
      {isOpen && answer.value && <CodeBlock title="Python" code={answer.value.python} />}
    </details>
  );
}
