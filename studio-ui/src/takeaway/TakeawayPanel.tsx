import { useRef, useState } from "preact/hooks";
import { ErrorNote } from "../errors/notes";
import { Icon, type IconName } from "../looks/icons";
import type { Scene } from "../protocol";
import type { Painting } from "../stage/painting";
import { learnerFor, learnerNamed, replaceScene, scene } from "../state/scene";
import { LARGEST_FILE, readScene, SceneFileError, writeScene } from "../state/sceneFile";
import { CodeDialog } from "./CodeDialog";
import { download } from "./download";
import { pngOf, svgOf } from "./pictureFiles";

/** What can be taken along: code, pictures, the scene itself. */
export function TakeawayPanel(props: { painting: () => Painting | null }) {
  const [shown, setShown] = useState<Scene | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const file = useRef<HTMLInputElement>(null);
  const attempt = async (action: () => unknown) => {
    setError(null);
    try {
      await action();
    } catch (problem) {
      setError(problem as Error);
    }
  };
  const name = `margrove-${scene.value.learner}`;
  const withPainting = async (write: (painting: Painting) => unknown) => {
    const painting = props.painting();
    if (painting) await write(painting);
  };
  const load = async () => {
    const chosen = file.current?.files?.[0];
    if (chosen) await takeSceneFile(chosen);
    if (file.current) file.current.value = "";
  };
  return (
    <section class="panel" aria-label="Export" data-testid="takeaway-panel">
      <h2>Export</h2>
      <div class="button-grid">
        <TakeButton
          wide
          icon="copy"
          text="Copy as Python"
          testId="show-code"
          onClick={() => setShown(scene.value)}
        />
        <TakeButton
          icon="download"
          text="PNG"
          label="Save the picture as PNG"
          testId="save-png"
          onClick={() =>
            attempt(() => withPainting(async (own) => download(`${name}.png`, await pngOf(own))))
          }
        />
        <TakeButton
          icon="download"
          text="SVG"
          label="Save the picture as SVG"
          testId="save-svg"
          onClick={() =>
            attempt(() =>
              withPainting((own) => download(`${name}.svg`, svgOf(own), "image/svg+xml")),
            )
          }
        />
        <TakeButton
          icon="download"
          text="Save scene"
          testId="save-scene"
          onClick={() => download(`${name}.json`, writeScene(scene.value), "application/json")}
        />
        <TakeButton
          icon="upload"
          text="Load scene"
          testId="load-scene"
          onClick={() => file.current?.click()}
        />
      </div>
      <input
        ref={file}
        type="file"
        accept=".json,application/json"
        class="unseen"
        tabIndex={-1}
        aria-label="Scene file"
        data-testid="scene-file"
        onChange={() => attempt(load)}
      />
      <ErrorNote error={error} />
      {shown && <CodeDialog scene={shown} onClose={() => setShown(null)} />}
    </section>
  );
}

async function takeSceneFile(chosen: File): Promise<void> {
  if (chosen.size > LARGEST_FILE) throw new SceneFileError("The file is too large for a scene.");
  const loaded = readScene(await chosen.text());
  const learner = learnerNamed(loaded.learner);
  if (!learner || learner.task !== loaded.task) {
    const known = learnerFor(loaded.task)?.name ?? "SVC";
    throw new SceneFileError(
      `learner must be one of the menu for ${loaded.task}, such as ${known}; got ${loaded.learner}.`,
    );
  }
  replaceScene(loaded);
}

function TakeButton(props: {
  icon: IconName;
  text: string;
  label?: string;
  testId: string;
  wide?: boolean;
  onClick: () => void;
}) {
  return (
    <button
      type="button"
      class={props.wide ? "tool primary wide" : "tool"}
      aria-label={props.label}
      data-testid={props.testId}
      onClick={props.onClick}
    >
      <Icon name={props.icon} />
      {props.text}
    </button>
  );
}
