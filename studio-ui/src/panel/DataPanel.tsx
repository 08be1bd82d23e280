import { useId } from "preact/hooks";
import { ErrorNote } from "../errors/notes";
import type { Preset, Task } from "../protocol";
import { drawing } from "../state/drawing";
import { counted, formatShare, readShare } from "../state/numbers";
import { catalogue, changeScene, pointCount, settle, testShare } from "../state/scene";
import { choosePreset, drawingError, drawPreset } from "./presets";
import { Slider } from "./Slider";

const TASKS: [Task, string][] = [
  ["classification", "Classes in the plane"],
  ["regression", "Values along a line"],
];

const SMALLEST = 10;
const LARGEST = 5000;

/** Which points: a preset, how many, how noisy, and the share kept for testing. */
export function DataPanel() {
  const id = useId();
  const presets = catalogue.value?.presets ?? [];
  const own = drawing.value;
  const preset = presets.find((other) => other.name === own?.preset) ?? null;
  return (
    <section class="panel" aria-label="Points" data-testid="data-panel">
      <h2>Points</h2>
      <div class="field">
        <label class="field-head" for={id}>
          Start from
        </label>
        <select
          id={id}
          data-testid="preset"
          value={own?.preset ?? ""}
          onChange={(event) => {
            const chosen = presets.find((other) => other.name === event.currentTarget.value);
            if (chosen) choosePreset(chosen);
          }}
        >
          {!own && <option value="">points of your own</option>}
          {TASKS.map(([task, title]) => (
            <optgroup key={task} label={title}>
              {presets
                .filter((other) => other.task === task)
                .map((other) => (
                  <option key={other.name} value={other.name}>
                    {other.title}
                  </option>
                ))}
            </optgroup>
          ))}
        </select>
      </div>
      {preset && <p class="hint">{preset.summary}</p>}
      {preset?.isDrawn && <DrawingFields preset={preset} />}
      <p class="hint" data-testid="point-count">
        {`${counted(pointCount.value, "point")} on the picture.`}
      </p>
      <Slider
        label="Kept for testing"
        value={testShare.value}
        low={0}
        high={0.5}
        format={formatShare}
        read={readShare}
        summary="The share of the points that the learner never sees; they are drawn hollow."
        testId="test-share"
        onInput={(value) => changeScene({ testShare: Number(value.toFixed(2)) }, "test-share")}
        onSettle={settle}
      />
      <ErrorNote error={drawingError.value} />
    </section>
  );
}

function DrawingFields({ preset }: { preset: Preset }) {
  const own = drawing.value;
  if (!own) return null;
  return (
    <>
      <Slider
        label="Number of points to draw"
        value={own.size}
        low={SMALLEST}
        high={LARGEST}
        scale="log"
        isInteger
        testId="size"
        onInput={(size) => drawPreset({ ...own, size })}
        onSettle={settle}
      />
      <Slider
        label="Noise"
        value={own.noise}
        low={0}
        high={Math.max(1, Math.ceil(3 * preset.noise))}
        testId="noise"
        onInput={(noise) => drawPreset({ ...own, noise })}
        onSettle={settle}
      />
      <button
        type="button"
        class="tool wide"
        data-testid="new-sample"
        onClick={() => {
          settle();
          drawPreset({ ...own, seed: own.seed + 1 });
        }}
      >
        Draw another sample
      </button>
    </>
  );
}
