import { useEffect, useRef, useState } from "preact/hooks";
import { useAnswer } from "../connection/useAnswer";
import { ErrorNote, ProgressNote } from "../errors/notes";
import { Icon } from "../looks/icons";
import type { Scene } from "../protocol";

const COPIED_FOR = 1600;

/** The scene as a Python program that needs nothing but margrove. */
export function CodeDialog(props: { scene: Scene; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isCopied, setCopied] = useState(false);
  const answer = useAnswer<"code">({ kind: "code", scene: props.scene }, "code");
  useEffect(() => dialog.current?.showModal(), []);
  const code = answer.value?.python ?? "";
  const copy = async () => {
    await navigator.clipboard.writeText(code);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_FOR);
  };
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="code-title"
      data-testid="code-dialog"
      onClose={props.onClose}
    >
      <div class="dialog-head">
        <h2 id="code-title">This scene in Python</h2>
        <button
          type="button"
          class="tool primary"
          data-testid="copy-code"
          disabled={!code}
          onClick={copy}
        >
          <Icon name="copy" />
          {isCopied ? "Copied" : "Copy"}
        </button>
        <button
          type="button"
          class="tool"
          data-testid="close-code"
          onClick={() => dialog.current?.close()}
        >
          Close
        </button>
      </div>
      <ErrorNote error={answer.error} />
      <ProgressNote progress={answer.progress} />
      <pre tabIndex={0}>
        <code data-testid="code">{code}</code>
      </pre>
    </dialog>
  );
}
