import { useMemo, useState } from "preact/hooks";
import type { Scene } from "../../protocol";
import { ErrorNote, FiguresPanel, Stage, useAnswer, usePicture } from "../../shell";
import { HeatMap } from "../../views/HeatMap";
import { readable } from "../../views/numbers";
import { SlowProgress } from "../SlowProgress";

/** The machine of the scene with another C and gamma. */
export function machineAt(scene: Scene, place: { C: number; gamma: number }): Scene {
  const parameters = { ...scene.parameters, kernel: "rbf", C: place.C, gamma: place.gamma };
  return { ...scene, learner: "SVC", parameters };
}

/** Scores over C and gamma, and beside them the machine of the chosen cell. */
export function MapStage(props: {
  scene: Scene;
  channel: string;
  onTake?: (scene: Scene) => void;
}) {
  const { scene, channel } = props;
  // The map itself is of all C and gamma: moving to another cell must not ask for it again.
  const request = useMemo(() => ({ kind: "map" as const, scene }), [scene]);
  const answer = useAnswer<"map">(request, channel);
  const map = answer.value;
  const [chosen, setChosen] = useState<{ C: number; gamma: number } | null>(null);
  const place = chosen ?? map?.best ?? null;
  const machine = useMemo(() => (place ? machineAt(scene, place) : null), [scene, place]);
  const picture = usePicture(machine, `${channel}-machine`);
  return (
    <div class="map-stage" data-testid="map-stage">
      <div class="map-main">
        <ErrorNote error={answer.error} />
        <SlowProgress progress={answer.progress} isWaiting={answer.isWaiting} />
        {map && (
          <HeatMap map={map} chosen={place} onChoose={(C, gamma) => setChosen({ C, gamma })} />
        )}
      </div>
      {machine && place && (
        <section class="map-machine" aria-label="The machine of the chosen cell">
          <h2 class="map-title" aria-live="polite" data-testid="map-machine">
            {`C = ${readable(place.C, 3)}, gamma = ${readable(place.gamma, 3)}`}
          </h2>
          <ErrorNote error={picture.error} />
          <Stage
            scene={machine}
            picture={picture.value}
            testId="map-plane"
            label="The machine of the chosen cell"
          />
          {picture.value && (
            <FiguresPanel figures={picture.value.figures} task={machine.task} compact />
          )}
          {props.onTake && (
            <button
              type="button"
              class="v-tool"
              data-testid="map-take"
              onClick={() => props.onTake?.(machine)}
            >
              Open in the playground
            </button>
          )}
        </section>
      )}
    </div>
  );
}
