import { useMemo } from "preact/hooks";
import type { Learner, Scene } from "../../protocol";
import { catalogue, defaultsOf, Note, openMode, replaceScene, scene as shared } from "../../shell";
import { MapStage } from "./MapStage";

/** Which C and gamma would suit the points of the playground. */
export function MapMode() {
  const scene = shared.value;
  const learners = catalogue.value?.learners;
  const machine = useMemo(() => asMachine(scene, learners ?? []), [scene, learners]);
  return (
    <div class="mode mode-map">
      <p class="mode-lead">
        Every cell is a support vector machine with the Gaussian kernel, judged on points it was not
        fitted to. Click one, or press Enter on it, to see what it has learnt.
      </p>
      {machine && scene.x.length > 0 ? (
        <MapStage scene={machine} channel="map" onTake={take} />
      ) : (
        <Note>
          {scene.x.length === 0
            ? "There are no points yet: draw some in the playground."
            : "The map is of classes: choose points with classes in the playground."}
        </Note>
      )}
    </div>
  );
}

function asMachine(scene: Scene, learners: Learner[]): Scene | null {
  const learner = learners.find((own) => own.name === "SVC");
  if (scene.task !== "classification" || !learner) return null;
  return { ...scene, learner: "SVC", parameters: defaultsOf(learner) };
}

function take(scene: Scene): void {
  replaceScene(scene);
  openMode("playground");
}
