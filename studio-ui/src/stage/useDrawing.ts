import type { RefObject } from "preact";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { palette } from "../looks/colours";
import type { Scene, Step } from "../protocol";
import { learnerNamed } from "../state/scene";
import { type Flatness, preparePlane } from "./drawPlane";
import type { PointMarks } from "./drawPoints";
import type { Frame } from "./frame";
import type { Layers, StagePicture } from "./layers";
import { type Painting, paintBack, paintFront, pointRadius } from "./painting";
import { CanvasPen } from "./pen";

export interface Drawn {
  scene: Scene;
  picture: StagePicture | null;
  lines: Step["lines"];
  layers: Layers;
  highlighted: number[];
  focused: number;
  hovered: number;
  isCompact: boolean;
  zoom: number;
}

const NO_MARGINS: [number[][], number[][]] = [[], []];

/**
 * Draws on two canvases: what was learnt on the back, the points on the front. A dragged point needs
 * the front alone, at each frame; the back waits for the next picture.
 */
export function useDrawing(
  back: RefObject<HTMLCanvasElement>,
  front: RefObject<HTMLCanvasElement>,
  frame: Frame,
  drawn: Drawn,
): Painting {
  const { scene, picture, lines, layers, isCompact, zoom, highlighted, focused, hovered } = drawn;
  const colours = palette.value;
  const flatness = flatnessOf(scene);
  const plane = picture?.plane ?? null;
  const prepared = useMemo(
    () => (plane ? preparePlane(plane, colours, flatness) : null),
    [plane, colours, flatness],
  );
  const painting: Painting = useMemo(
    () => ({ scene, picture, prepared, lines, layers, palette: colours, isCompact, zoom }),
    [scene, picture, prepared, lines, layers, colours, isCompact, zoom],
  );

  // Of the scene, the back shows the view and the names beside the axes only.
  const { features, target, task } = scene;
  useLayoutEffect(() => {
    withPen(back.current, frame, (pen) => paintBack(pen, frame, painting));
  }, [frame, picture, prepared, lines, layers, colours, isCompact, zoom, features, target, task]);

  const radius = pointRadius(scene.x.length, frame.width, isCompact, zoom);
  useLayoutEffect(() => {
    const margins = prepared?.margins ?? NO_MARGINS;
    const marks: PointMarks = {
      scene,
      picture,
      layers,
      highlighted,
      focused,
      hovered,
      radius,
      margins,
    };
    withPen(front.current, frame, (pen) => paintFront(pen, frame, marks, colours));
  }, [frame, scene, picture, prepared, layers, highlighted, focused, hovered, radius, colours]);
  return painting;
}

/** Trees and what is made of them answer alike within boxes, however narrow, unless they cut slanting. */
function flatnessOf(scene: Scene): Flatness {
  const family = learnerNamed(scene.learner)?.family;
  if (family === "margin") return "smooth";
  return family === undefined || scene.parameters.splitter === "oblique" ? "seen" : "flat";
}

/** Draws on a canvas at the resolution of the screen. */
function withPen(
  canvas: HTMLCanvasElement | null,
  frame: Frame,
  draw: (pen: CanvasPen) => void,
): void {
  const context = canvas?.getContext("2d");
  if (!canvas || !context) return;
  const ratio = window.devicePixelRatio || 1;
  const width = Math.round(frame.width * ratio);
  const height = Math.round(frame.height * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, frame.width, frame.height);
  draw(new CanvasPen(context));
}
