import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Scene, Step } from "../protocol";
import { ClassMark } from "./ClassMark";
import { ALL_LAYERS, type Layers, type StagePicture } from "./layers";

interface LegendProps {
  scene: Scene;
  picture: StagePicture | null;
  layers?: Partial<Layers>;
  /** Of a step: the points it is about, and its lines. */
  step?: Pick<Step, "highlighted" | "highlights" | "lines"> | null;
}

/** What the marks of the stage mean; only those that are on it. */
export function Legend({ scene, picture, layers: chosen, step }: LegendProps) {
  const layers = { ...ALL_LAYERS, ...chosen };
  const plane = picture?.plane ?? null;
  const curve = picture?.curve ?? null;
  const kinds = new Set(plane?.supportKind ?? curve?.supportKind ?? []);
  const hasTest = picture?.isTest?.includes(1) ?? false;
  const isPlane = scene.task === "classification";
  const present = useMemo(() => new Set(scene.y), [scene.y]);
  return (
    <ul class="legend" data-testid="legend" aria-label="Legend">
      {isPlane &&
        scene.classes.map((name, number) =>
          present.has(number) ? (
            <Entry key={name} sign={<ClassMark own={number} />} text={name} />
          ) : null,
        )}
      {curve && <Entry sign={<LineSign kind="curve" />} text="prediction" />}
      {hasTest && <Entry sign={<ClassMark own={0} isHollow />} text="kept for testing" />}
      {plane && plane.classes.length > 1 && !step?.lines.length && (
        <Entry sign={<LineSign kind="boundary" />} text="boundary" />
      )}
      {plane?.hasMargins && layers.margins && (
        <Entry sign={<LineSign kind="margin" />} text="margin" />
      )}
      {curve?.low && curve.band && layers.margins && (
        <Entry sign={<LineSign kind="band" />} text={curve.band} />
      )}
      {layers.support && kinds.has(1) && (
        <Entry sign={<RingSign kind={1} />} text={curve ? "on the tube" : "on the margin"} />
      )}
      {layers.support && kinds.has(2) && (
        <Entry sign={<RingSign kind={2} />} text="inside the margin" />
      )}
      {layers.support && kinds.has(3) && (
        <Entry
          sign={<RingSign kind={curve ? 2 : 3} />}
          text={curve ? "outside the tube" : "on the wrong side"}
        />
      )}
      {(plane?.members || curve?.members) && layers.members && (
        <Entry sign={<LineSign kind="member" />} text="single members" />
      )}
      {plane?.weight && layers.weights && <Entry sign={<WeightSign />} text="size: weight" />}
      {plane?.hulls && layers.hulls && (
        <Entry sign={<LineSign kind="nearest" />} text="nearest points of the hulls" />
      )}
      {step && step.highlighted.length > 0 && step.highlights && (
        <Entry sign={<RingSign kind="highlight" />} text={step.highlights} />
      )}
      {step && <LineEntries lines={step.lines} />}
    </ul>
  );
}

/** In the order in which they are drawn. */
const LINE_TEXTS: [Step["lines"][number]["role"], string][] = [
  ["before", "line before this step"],
  ["after", "line after this step"],
  ["average", "line of the averaged weights"],
];

function LineEntries({ lines }: { lines: Step["lines"] }) {
  const shown = LINE_TEXTS.filter(([role]) => lines.some((line) => line.role === role));
  const arrows = lines.filter((line) => line.role !== "average").length;
  return (
    <>
      {shown.map(([role, text]) => (
        <Entry key={role} sign={<LineSign kind={role} />} text={text} />
      ))}
      {arrows > 0 && (
        <Entry sign={<ArrowSign />} text={`weights w of ${arrows > 1 ? "each" : "the"} line`} />
      )}
    </>
  );
}

function ArrowSign() {
  return (
    <svg class="line-sign" viewBox="0 0 24 16" width="24" height="16" aria-hidden="true">
      <path d="M1 8h16" />
      <polygon points="23,8 15,3.5 15,12.5" />
    </svg>
  );
}

function Entry({ sign, text }: { sign: ComponentChildren; text: string }) {
  return (
    <li>
      {sign}
      <span>{text}</span>
    </li>
  );
}

function LineSign({ kind }: { kind: string }) {
  return (
    <svg
      class={`line-sign sign-${kind}`}
      viewBox="0 0 24 16"
      width="24"
      height="16"
      aria-hidden="true"
    >
      {kind === "band" && <rect x="0" y="3" width="24" height="10" />}
      <path d="M1 8h22" />
    </svg>
  );
}

function RingSign({ kind }: { kind: number | "highlight" }) {
  return (
    <svg
      class={`ring-sign ring-${kind}`}
      viewBox="0 0 16 16"
      width="16"
      height="16"
      aria-hidden="true"
    >
      <circle class="ring-dot" cx="8" cy="8" r="2.8" />
      <circle class="ring" cx="8" cy="8" r="6.3" />
    </svg>
  );
}

function WeightSign() {
  return (
    <svg class="ring-sign" viewBox="0 0 24 16" width="24" height="16" aria-hidden="true">
      <circle class="ring-dot" cx="5" cy="8" r="2.4" />
      <circle class="ring-dot" cx="16" cy="8" r="6" />
    </svg>
  );
}
