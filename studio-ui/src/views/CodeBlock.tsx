import { useState } from "preact/hooks";

/** Code to read and to copy. */
export function CodeBlock(props: { title: string; code: string }) {
  const [told, setTold] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(props.code);
      setTold("copied");
    } catch {
      setTold("press Ctrl+C");
    }
    setTimeout(() => setTold(""), 2000);
  };
  return (
    <div class="v-code" data-testid="code-block">
      <div class="v-code-head">
        <span>{props.title}</span>
        <span class="v-faint" role="status">
          {told}
        </span>
        <button type="button" class="v-tool" data-testid="copy-code" onClick={copy}>
          Copy
        </button>
      </div>
      <pre tabIndex={0}>
        <code>{props.code}</code>
      </pre>
    </div>
  );
}
