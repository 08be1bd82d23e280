import { useId, useMemo, useRef } from "preact/hooks";
import { projector } from "../looks/theme";
import type { Scene, Step } from "../protocol";
import { counted } from "../state/numbers";
import { changeScene } from "../state/scene";
import { frameOf, placeAt, pointPlace, xPixel, yPixel } from "./frame";
import { ALL_LAYERS, type Layers, type StagePicture } from "./layers";
import type { Painting } from "./painting";
import { ReadoutBox } from "./ReadoutBox";
import { placeLines, pointLines } from "./readout";
import { stageTools } from "./tools";
import { useDrawing } from "./useDrawing";
import { useStageInput } from "./useStageInput";
import { useStageSize } from "./useStageSize";

export type { Layers, StagePicture } from "./layers";

export interface StageProps {
  scene: Scene;
  /** A `Picture` or a `Step`; null while there is none. */
  picture: StagePicture | null;
  editable?: boolean;
  /** Changes with the same key in a row are one gesture. Default: the shared scene is changed. */
  onEdit?: (scene: Scene, key: string | null) => void;
  highlighted?: number[];
  lines?: Step["lines"];
  layers?: Partial<Layers>;
  /** Largest width and height in CSS pixels. */
  size?: number;
  compact?: boolean;
  label?: string;
  testId?: string;
  /** A click on a point of a stage that is not editable. */
  onPick?: (point: number) => void;
  /** Told at each drawing, for export. */
  onPainting?: (painting: Painting) => void;
}

const NO_LINES: Step["lines"] = [];
const NO_POINTS: number[] = [];
const PROJECTOR_ZOOM = 1.35;

const EDITABLE_HELP =
  "Enter goes to the points, Tab to the next one, arrows move it, Delete erases it, 1 to 4 choose its class, N draws a point, Escape leaves.";
const READ_ONLY_HELP = "Enter goes to the points, Tab to the next one, Escape leaves.";

function editSharedScene(next: Scene, key: string | null): void {
  changeScene(() => next, key);
}

/** The picture of a scene: points on the plane (or along a curve) and what was learnt from them. */
export function Stage(props: StageProps) {
  const { scene, picture } = props;
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const back = useRef<HTMLCanvasElement>(null);
  const front = useRef<HTMLCanvasElement>(null);
  const isCompact = props.compact ?? false;
  const isEditable = props.editable ?? false;
  const zoom = projector.value ? PROJECTOR_ZOOM : 1;
  const { width, height } = useStageSize(box, scene.task, props.size);
  const layers = useMemo(() => ({ ...ALL_LAYERS, ...props.layers }), [props.layers]);
  const frame = useMemo(
    () => frameOf(width, height, scene.view, isCompact, zoom),
    [width, height, scene.view, isCompact, zoom],
  );
  const { handlers, focused, isByKey, pointed } = useStageInput(box, {
    scene,
    frame,
    isEditable,
    onEdit: props.onEdit ?? editSharedScene,
    onPick: props.onPick,
  });
  const painting = useDrawing(back, front, frame, {
    scene,
    picture,
    lines: props.lines ?? NO_LINES,
    layers,
    highlighted: props.highlighted ?? NO_POINTS,
    focused,
    hovered: pointed?.point ?? -1,
    isCompact,
    zoom,
  });
  props.onPainting?.(painting);

  const focusLines = focused >= 0 ? pointLines(scene, picture, focused) : [];
  const said = pointed
    ? { ...pointed, lines: linesAt(painting, pointed.point, placeAt(frame, pointed.x, pointed.y)) }
    : focused >= 0 && isByKey
      ? { ...pixelOf(frame, scene, focused), lines: [numbered(focused), ...focusLines] }
      : null;
  const isOnPoint = (pointed?.point ?? -1) >= 0 && (isEditable || props.onPick !== undefined);
  const testId = props.testId ?? "stage";
  return (
    <div class="stage-room">
      <div
        ref={box}
        class={[
          "stage",
          isEditable && `editable tool-${stageTools.value.tool}`,
          isOnPoint && "on-point",
        ]
          .filter(Boolean)
          .join(" ")}
        role="application"
        aria-roledescription="plot"
        aria-label={
          props.label ?? `${counted(scene.x.length, "point")} and what ${scene.learner} learnt`
        }
        aria-describedby={`${id}-help`}
        tabIndex={0}
        data-testid={testId}
        data-points={scene.x.length}
        data-focused={focused}
        data-fitted={picture?.plane || picture?.curve ? "yes" : "no"}
        style={{ width: `${width}px`, height: `${height}px` }}
        {...handlers}
      >
        <canvas ref={back} data-testid={`${testId}-back`} />
        <canvas ref={front} data-testid={`${testId}-front`} />
        {said && said.lines.length > 0 && <ReadoutBox {...said} width={width} height={height} />}
      </div>
      <p id={`${id}-help`} class="unseen">
        {isEditable ? EDITABLE_HELP : READ_ONLY_HELP}
      </p>
      <p class="unseen" aria-live="polite" data-testid={`${testId}-said`}>
        {focused >= 0 ? `Point ${focused + 1} of ${scene.x.length}: ${focusLines.join(", ")}` : ""}
      </p>
    </div>
  );
}

function linesAt(painting: Painting, point: number, place: [number, number]): string[] {
  const { scene, picture, prepared } = painting;
  if (point >= 0) return [numbered(point), ...pointLines(scene, picture, point)];
  return placeLines(scene, picture, place, prepared?.isFlat ?? false);
}

/** As the sentences of steps count points. */
function numbered(point: number): string {
  return `point ${point + 1}`;
}

function pixelOf(frame: ReturnType<typeof frameOf>, scene: Scene, index: number) {
  const [a, b] = pointPlace(scene, index);
  return { x: xPixel(frame, a), y: yPixel(frame, b) };
}
