import { useEffect } from "preact/hooks";
import type { Scene } from "../../protocol";
import { catalogue, changeScene, Note, scene as shared } from "../../shell";
import { Toolbar } from "../../stage/Toolbar";
import { CompareStage } from "./CompareStage";
import { contenders, firstContenders } from "./contenders";

/** Learners side by side on the points of the playground; a point that is dragged moves in all. */
export function CompareMode() {
  const scene = shared.value;
  const own = contenders.value[scene.task];
  const learners = catalogue.value?.learners;
  useEffect(() => {
    if (own.length > 0 || !learners) return;
    contenders.value = { ...contenders.value, [scene.task]: firstContenders(scene, learners) };
  }, [own, learners, scene]);
  return (
    <div class="mode mode-compare">
      <div class="mode-bar">
        <p class="mode-lead">
          The same points, learnt in different ways. Drag a point in any picture.
        </p>
        <Toolbar />
      </div>
      {scene.x.length === 0 && <Note>There are no points yet: draw some in any picture.</Note>}
      <CompareStage
        scene={scene}
        contenders={own}
        onContenders={(all) => {
          contenders.value = { ...contenders.value, [scene.task]: all };
        }}
        onEdit={editShared}
      />
    </div>
  );
}

/** Points only: the learner of the playground stays what it is. */
function editShared(edited: Scene, key: string | null): void {
  changeScene((old) => ({ ...edited, learner: old.learner, parameters: old.parameters }), key);
}
