import { useMemo, useState } from "preact/hooks";
import type { Lesson, Scene, Stepped, TreeSource } from "../../protocol";
import { CompareStage } from "../compare/CompareStage";
import type { Contender } from "../compare/contenders";
import { MapStage } from "../map/MapStage";
import { StepsStage } from "../steps/StepsStage";
import { TreeStage } from "../tree/TreeStage";
import { BootstrapStage } from "./BootstrapStage";
import { ImpurityStage } from "./ImpurityStage";
import { PlaygroundStage } from "./PlaygroundStage";

/** The picture beside the text of a lesson. */
export function LessonStage(props: {
  lesson: Lesson;
  scene: Scene | null;
  onScene: (scene: Scene) => void;
}) {
  const { lesson, scene } = props;
  switch (lesson.stage) {
    case "impurity":
      return <ImpurityStage />;
    case "bootstrap":
      return <BootstrapStage values={lesson.values} />;
    case "tree":
      return <LessonTree lesson={lesson} scene={scene} />;
    case "steps":
      return <LessonSteps {...props} />;
    default:
      return scene ? <StageWithPoints {...props} scene={scene} /> : null;
  }
}

function StageWithPoints(props: { lesson: Lesson; scene: Scene; onScene: (scene: Scene) => void }) {
  const { lesson, scene, onScene } = props;
  switch (lesson.stage) {
    case "map":
      return <MapStage scene={scene} channel="lesson-map" />;
    case "compare":
      return <LessonCompare lesson={lesson} scene={scene} onScene={onScene} />;
    default:
      return <PlaygroundStage scene={scene} onScene={onScene} />;
  }
}

function LessonSteps(props: {
  lesson: Lesson;
  scene: Scene | null;
  onScene: (scene: Scene) => void;
}) {
  const { lesson, scene } = props;
  const stepped = useMemo<Stepped | null>(
    () => scene ?? (lesson.table ? { lecture: lesson.table } : null),
    [lesson, scene],
  );
  if (!stepped || !lesson.steps) return null;
  return (
    <StepsStage
      scene={stepped}
      kind={lesson.steps}
      channel="lesson-steps"
      size={430}
      onEdit={scene ? props.onScene : undefined}
    />
  );
}

function LessonTree(props: { lesson: Lesson; scene: Scene | null }) {
  const { lesson, scene } = props;
  const source = useMemo<TreeSource | null>(() => {
    if (lesson.table) return { lecture: lesson.table, parameters: {} };
    return scene ? { scene } : null;
  }, [lesson, scene]);
  return source && <TreeStage source={source} channel="lesson-tree" height={420} />;
}

function LessonCompare(props: { lesson: Lesson; scene: Scene; onScene: (scene: Scene) => void }) {
  const { lesson, scene } = props;
  const [contenders, setContenders] = useState<Contender[]>(() => [
    { learner: scene.learner, parameters: scene.parameters },
    ...lesson.others,
  ]);
  // The scene that is checked has the first learner, with its parameters as they are now.
  const keep = (all: Contender[]) => {
    setContenders(all);
    const [first] = all;
    if (first) props.onScene({ ...scene, ...first });
  };
  return (
    <CompareStage
      scene={scene}
      contenders={contenders}
      channel="lesson-"
      isFolded
      onContenders={keep}
      onEdit={(edited) =>
        props.onScene({ ...edited, learner: scene.learner, parameters: scene.parameters })
      }
    />
  );
}
