import type { Scene } from "../../protocol";
import {
  ErrorNote,
  FiguresPanel,
  Legend,
  learnerNamed,
  ParameterPanel,
  Stage,
  usePicture,
} from "../../shell";
import { PointTools } from "../PointTools";
import { SlowProgress } from "../SlowProgress";

/** A playground of the lesson's own: what is moved here stays in the lesson. */
export function PlaygroundStage(props: { scene: Scene; onScene: (scene: Scene) => void }) {
  const { scene, onScene } = props;
  const picture = usePicture(scene, "lesson");
  const learner = learnerNamed(scene.learner);
  return (
    <div class="lesson-playground" data-testid="lesson-playground">
      <div class="v-stack">
        <PointTools scene={scene} />
        <ErrorNote error={picture.error} />
        <SlowProgress progress={picture.progress} isWaiting={picture.isWaiting} />
        <Stage
          scene={scene}
          picture={picture.value}
          editable
          onEdit={onScene}
          testId="lesson-plane"
          label="The points of the lesson"
        />
        <Legend scene={scene} picture={picture.value} />
      </div>
      <div class="v-stack">
        {learner && (
          <ParameterPanel
            learner={learner}
            values={scene.parameters}
            idPrefix="lesson-parameter"
            onChange={(name, value) =>
              onScene({ ...scene, parameters: { ...scene.parameters, [name]: value } })
            }
          />
        )}
        {picture.value && <FiguresPanel figures={picture.value.figures} task={scene.task} />}
      </div>
    </div>
  );
}
