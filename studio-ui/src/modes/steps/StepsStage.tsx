import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Scene, Step, StepKind, Stepped, Steps } from "../../protocol";
import { ask, ErrorNote, Legend, Stage, useAnswer } from "../../shell";
import { CurvesChart } from "../../views/CurvesChart";
import { GainsView } from "../../views/GainsView";
import { SmoBoxView } from "../../views/SmoBoxView";
import { asked } from "../../views/tree/nodeWords";
import { TreeViewer } from "../../views/tree/TreeViewer";
import { PointTools } from "../PointTools";
import { SlowProgress } from "../SlowProgress";
import { FiguresTable } from "./FiguresTable";
import { type Loaded, StepLoader } from "./stepLoader";
import { Transport } from "./Transport";
import { usePlayer } from "./usePlayer";

const GRID: [number, number] = [100, 100];

/**
 * A fit, step by step: the stage, the player, and what there is to say of each step. A table of the
 * lectures has no points in a plane: its tree stands where the stage would be.
 */
export function StepsStage(props: {
  scene: Stepped;
  kind: StepKind;
  channel: string;
  size?: number;
  /** Of points that may be moved here: the fit is then made anew. */
  onEdit?: (scene: Scene) => void;
}) {
  const { scene, kind, channel, onEdit } = props;
  const request = useMemo(() => ({ kind: "steps" as const, steps: kind, scene }), [kind, scene]);
  const answer = useAnswer<"steps">(request, channel);
  // While another kind is on its way the old answer would be told with the wrong pictures.
  const steps = answer.value?.kind === kind ? answer.value : null;
  const last = steps?.steps.length ?? 0;
  const [loaded, setLoaded] = useState<Loaded>({ step: null, error: null, isWaiting: true });
  const player = usePlayer(last, !loaded.isWaiting && steps !== null, true);
  useLoadedStep(scene, kind, `${channel}-state`, player.number, steps, (next) =>
    setLoaded((old) => ({ ...next, step: next.step ?? (onEdit ? old.step : null) })),
  );
  const error = answer.error ?? loaded.error;
  // While points are moved, the state of the last fit stays until that of the next one is there.
  const step = loaded.step && !error && fitsScene(loaded.step, scene) ? loaded.step : null;
  return (
    <div class="steps" data-testid="steps-stage">
      <div class="steps-main">
        <ErrorNote error={error} />
        <SlowProgress progress={answer.progress} isWaiting={answer.isWaiting} />
        {!answer.error && <Transport player={player} last={last} />}
        <Sentence steps={steps} number={player.number} isWaiting={answer.isWaiting} />
        {"lecture" in scene ? (
          step && <StepTree step={step} height={420} />
        ) : (
          <>
            {onEdit && <PointTools scene={scene} />}
            <Stage
              scene={scene}
              picture={step}
              highlighted={step?.highlighted ?? []}
              lines={step?.lines ?? []}
              size={props.size}
              editable={onEdit !== undefined}
              onEdit={onEdit}
              testId="steps-plane"
              label={`The points and what is learnt after step ${player.number}`}
            />
            <Legend scene={scene} picture={step} step={step} />
          </>
        )}
      </div>
      <div class="steps-side">
        {steps && steps.curves.length > 0 && (
          <CurvesChart
            key={`${kind}-${steps.scale}`}
            title="Over the steps"
            curves={steps.curves}
            scale={steps.scale}
            cursor={player.number}
            onSeek={player.seek}
          />
        )}
        {step && <StepDetails step={step} hasTree={!("lecture" in scene)} />}
        {steps && <FiguresTable steps={steps} number={player.number} onSeek={player.seek} />}
      </div>
    </div>
  );
}

function fitsScene(step: Step, scene: Stepped): boolean {
  if ("lecture" in scene) return true;
  return scene.task === "classification" ? step.curve === null : step.plane === null;
}

function StepDetails(props: { step: Step; hasTree: boolean }) {
  const { step } = props;
  return (
    <>
      {step.box && <SmoBoxView box={step.box} />}
      {props.hasTree && <StepTree step={step} height={300} />}
      {step.gains && step.gains.candidates.length > 0 && <GainsView gains={step.gains} />}
    </>
  );
}

function StepTree(props: { step: Step; height: number }) {
  const { tree, gains } = props.step;
  if (!tree) return null;
  return (
    <TreeViewer
      tree={tree}
      height={props.height}
      marked={gains?.node ?? null}
      isCompact
      label="The tree so far. Arrow keys walk through it."
    />
  );
}

/** What happened, said aloud as well. */
function Sentence(props: { steps: Steps | null; number: number; isWaiting: boolean }) {
  const { steps, number } = props;
  const text = steps
    ? number === 0
      ? `Before the first step. ${steps.summary}`
      : asked(steps.steps[number - 1]?.text ?? "")
    : props.isWaiting
      ? "The fit is being made…"
      : "";
  const isShortened = steps !== null && steps.total > steps.steps.length;
  return (
    <div class="steps-told">
      <p class="steps-sentence" aria-live="polite" data-testid="step-text">
        {number > 0 && <b>{`Step ${number}. `}</b>}
        {text}
      </p>
      {isShortened && (
        <p class="v-faint">{`The fit took ${steps.total.toLocaleString("en")} steps; ${steps.steps.length.toLocaleString("en")} of them are shown.`}</p>
      )}
    </div>
  );
}

function useLoadedStep(
  scene: Stepped,
  kind: StepKind,
  channel: string,
  number: number,
  steps: Steps | null,
  onLoaded: (loaded: Loaded) => void,
): void {
  const loader = useRef<StepLoader | null>(null);
  const content = useMemo(() => JSON.stringify([kind, scene]), [kind, scene]);
  // Compared by content: the state of a step is asked for when its fit is another one.
  useEffect(() => {
    const load = (wanted: number) =>
      ask({ kind: "step", steps: kind, scene, number: wanted, grid: GRID }, { channel });
    const own = new StepLoader(load, onLoaded);
    loader.current = own;
    return () => own.drop();
  }, [content]);
  useEffect(() => {
    if (steps) loader.current?.want(number, steps.steps.length);
  }, [number, steps]);
}
