import { useState } from "preact/hooks";

/** A place to drop a file on, and a button to choose one. */
export function FileDrop(props: {
  isBusy: boolean;
  hasTable: boolean;
  onFile: (file: File) => void;
}) {
  const [isOver, setIsOver] = useState(false);
  const take = (files: FileList | null | undefined) => {
    const file = files?.[0];
    if (file && !props.isBusy) props.onFile(file);
  };
  const classes = ["file-drop", isOver ? "is-over" : "", props.hasTable ? "is-small" : ""];
  return (
    <label
      class={classes.join(" ")}
      data-testid="file-drop"
      onDragOver={(event) => {
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setIsOver(false);
        take(event.dataTransfer?.files);
      }}
    >
      <b>{props.hasTable ? "Another table" : "Drop a table here, or choose a file"}</b>
      {!props.hasTable && (
        <span class="v-faint">
          CSV, TSV, Parquet or JSON lines, compressed or not. It goes to the studio on this
          computer, and nowhere else.
        </span>
      )}
      <span class="v-tool file-button" aria-hidden="true">
        Choose a file
      </span>
      <input
        class="v-hidden"
        type="file"
        disabled={props.isBusy}
        data-testid="file-input"
        onChange={(event) => {
          take(event.currentTarget.files);
          event.currentTarget.value = "";
        }}
      />
    </label>
  );
}
