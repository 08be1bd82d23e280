import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { type Answer, usePicture } from "../connection/useAnswer";
import { ErrorNote, Fence, ProgressNote } from "../errors/notes";
import { DataPanel } from "../panel/DataPanel";
import { FiguresPanel } from "../panel/FiguresPanel";
import { LearnerPanel } from "../panel/LearnerPanel";
import type { Picture } from "../protocol";
import { Legend } from "../stage/Legend";
import type { Layers } from "../stage/layers";
import type { Painting } from "../stage/painting";
import { Stage } from "../stage/Stage";
import { Toolbar } from "../stage/Toolbar";
import { scene } from "../state/scene";
import { TakeawayPanel } from "../takeaway/TakeawayPanel";
import { LayerSwitches } from "./LayerSwitches";

const surface = signal<"score" | "probability">("score");
const layers = signal<Partial<Layers>>({ hulls: false });

/** Drag a point and see margin, support vectors and certificate follow. */
export function Playground() {
  const shown = scene.value;
  const picture = usePicture(shown, "picture", { surface: surface.value });
  const isOfTask = picture.value?.task === shown.task;
  const value = isOfTask ? picture.value : null;
  const painting = useRef<Painting | null>(null);
  return (
    <div class="columns">
      <div class="column-left">
        <DataPanel />
        <LearnerPanel />
      </div>
      <div class="column-stage">
        <Toolbar />
        <Fence name="picture">
          <div class={boxClass(picture)}>
            <Stage
              scene={shown}
              picture={value}
              editable
              layers={layers.value}
              onPainting={(own) => {
                painting.current = own;
              }}
            />
            {shown.x.length === 0 && <EmptyStage />}
            {picture.error && (
              <div class="stage-error">
                <ErrorNote error={picture.error} />
              </div>
            )}
          </div>
        </Fence>
        <Legend scene={shown} picture={value} layers={layers.value} />
        <SlowProgress picture={picture} />
      </div>
      <div class="column-right">
        <FiguresSection picture={picture} value={value} />
        <LayerSwitches
          picture={value}
          layers={layers.value}
          onLayers={(change) => {
            layers.value = { ...layers.value, ...change };
          }}
          surface={surface.value}
          onSurface={(kind) => {
            surface.value = kind;
          }}
        />
        <TakeawayPanel painting={() => painting.current} />
      </div>
    </div>
  );
}

function boxClass(picture: Answer<Picture>): string {
  const classes = ["stage-box", picture.isWaiting && "waiting", picture.error && "failed"];
  return classes.filter(Boolean).join(" ");
}

function EmptyStage() {
  return (
    <p class="stage-empty" data-testid="empty">
      No points yet. Choose “Draw” and press on the plane, or start from one of the sets.
    </p>
  );
}

/** Quick fits need no bar. */
function SlowProgress({ picture }: { picture: Answer<Picture> }) {
  const isSlow = picture.value === null || picture.progress?.note.startsWith("compiling");
  return isSlow ? <ProgressNote progress={picture.progress} /> : null;
}

function FiguresSection(props: { picture: Answer<Picture>; value: Picture | null }) {
  const { value } = props;
  return (
    <section
      class="panel"
      aria-label="Figures"
      aria-busy={props.picture.isWaiting}
      data-testid="figures-panel"
    >
      <h2>Results</h2>
      {value ? (
        <FiguresPanel figures={value.figures} task={value.task} />
      ) : (
        <p class="hint">
          {props.picture.error
            ? "There is no result: the picture shows the error."
            : "There is no result yet."}
        </p>
      )}
    </section>
  );
}
