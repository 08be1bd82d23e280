import { useMemo } from "preact/hooks";
import type { Scene } from "../../protocol";
import {
  defaultsOf,
  ErrorNote,
  FiguresPanel,
  LearnerMenu,
  learnerNamed,
  ParameterPanel,
  Stage,
  usePicture,
} from "../../shell";
import { isWide } from "../isWide";
import { SlowProgress } from "../SlowProgress";
import type { Contender } from "./contenders";
import { PythonOf } from "./PythonOf";

/** One learner on the common points: its menu, its picture, its figures and its parameters. */
export function ContenderView(props: {
  scene: Scene;
  contender: Contender;
  /** Of the connection, and the name of the column. */
  channel: string;
  name: string;
  onChange: (contender: Contender) => void;
  onRemove?: () => void;
  isFolded?: boolean;
  onEdit: (scene: Scene, key: string | null) => void;
}) {
  const { contender, name } = props;
  const learner = learnerNamed(contender.learner);
  const scene = useMemo(
    () => ({ ...props.scene, learner: contender.learner, parameters: contender.parameters }),
    [props.scene, contender],
  );
  const picture = usePicture(scene, props.channel, { grid: 100 });
  const value = picture.value?.task === scene.task ? picture.value : null;
  const letter = name.toUpperCase();
  return (
    <section class="contender" aria-label={`Learner ${letter}`} data-testid={`contender-${name}`}>
      <header class="contender-head">
        <span class="contender-letter" aria-hidden="true">
          {letter}
        </span>
        <LearnerMenu
          task={scene.task}
          value={contender.learner}
          label={`Learner ${letter}`}
          testId={`contender-${name}-learner`}
          onChange={(chosen) => {
            const next = learnerNamed(chosen);
            if (next) props.onChange({ learner: chosen, parameters: defaultsOf(next) });
          }}
        />
        {props.onRemove && (
          <button
            type="button"
            class="v-tool contender-remove"
            aria-label={`Remove learner ${letter}`}
            title="Remove"
            data-testid={`contender-${name}-remove`}
            onClick={props.onRemove}
          >
            ×
          </button>
        )}
      </header>
      <ErrorNote error={picture.error} />
      <SlowProgress progress={picture.progress} isWaiting={picture.isWaiting} />
      <Stage
        scene={scene}
        picture={value}
        editable
        compact
        onEdit={props.onEdit}
        testId={`contender-${name}-stage`}
        label={`Points and picture of ${learner?.title ?? contender.learner}`}
      />
      {value && <FiguresPanel figures={value.figures} task={scene.task} compact />}
      {learner && (
        <details class="v-details" open={isWide() && !props.isFolded}>
          <summary>Parameters</summary>
          <ParameterPanel
            learner={learner}
            values={contender.parameters}
            idPrefix={`contender-${name}`}
            onChange={(own, value) =>
              props.onChange({
                ...contender,
                parameters: { ...contender.parameters, [own]: value },
              })
            }
          />
        </details>
      )}
      <PythonOf scene={scene} channel={`${props.channel}-code`} name={`contender-${name}`} />
    </section>
  );
}
