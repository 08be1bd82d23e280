import type { RefObject } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Scene } from "../protocol";
import { settle } from "../state/scene";
import { type Frame, pointAt } from "./frame";
import { Gestures, reachOf } from "./gestures";
import { type KeyResult, pressKey } from "./keyboard";
import { stageTools } from "./tools";

export interface StageInputOptions {
  scene: Scene;
  frame: Frame;
  isEditable: boolean;
  onEdit: (scene: Scene, key: string | null) => void;
  onPick: ((point: number) => void) | undefined;
}

/** Where the pointer is: on a point, or at a place without one (-1). */
export interface Pointed {
  point: number;
  x: number;
  y: number;
}

/** From here on, looking for the point under the pointer would make the pointer lag. */
const MOST_TO_HOVER = 5000;

/** What pointer and keyboard do on a stage. */
export function useStageInput(box: RefObject<HTMLElement>, options: StageInputOptions) {
  const [focused, setFocused] = useState(-1);
  const [isByKey, setByKey] = useState(false);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const now = useRef(options);
  now.current = options;
  const gestures = useMemo(
    () =>
      new Gestures({
        frame: () => now.current.frame,
        scene: () => now.current.scene,
        tool: () => stageTools.peek(),
        edit: (scene, key) => {
          now.current = { ...now.current, scene }; // The next edit may come before the next drawing.
          now.current.onEdit(scene, key);
        },
        settle,
        hover: (point, x, y) => setPointed({ point, x, y }),
        focusPoint: setFocused,
      }),
    [],
  );
  const shownFocus = focused < options.scene.x.length ? focused : -1;

  const placeOf = (event: MouseEvent): [number, number] => {
    const place = box.current?.getBoundingClientRect();
    return [event.clientX - (place?.left ?? 0), event.clientY - (place?.top ?? 0)];
  };
  const pointUnder = (event: PointerEvent): Pointed => {
    const [x, y] = placeOf(event);
    const { scene, frame } = options;
    const isTooMany = scene.x.length > MOST_TO_HOVER;
    return { point: isTooMany ? -1 : pointAt(frame, scene, x, y, reachOf(event)), x, y };
  };
  const leave = () => setPointed(null);

  const onPointerDown = (event: PointerEvent) => {
    if (!options.isEditable) {
      const found = pointUnder(event);
      if (found.point >= 0) options.onPick?.(found.point);
      setPointed(found);
      return;
    }
    if (event.button !== 0 && event.button !== 2) return;
    setFocused(-1);
    setByKey(false);
    const [x, y] = placeOf(event);
    if (gestures.press(x, y, reachOf(event), event.button === 2)) {
      event.preventDefault();
      box.current?.focus({ preventScroll: true });
      box.current?.setPointerCapture(event.pointerId);
    }
  };
  const onPointerMove = (event: PointerEvent) => {
    if (options.isEditable) gestures.move(...placeOf(event), reachOf(event));
    else setPointed(pointUnder(event));
  };
  const apply = (result: KeyResult) => {
    if (result.scene && result.scene !== options.scene) {
      options.onEdit(result.scene, result.key ?? null);
      if (!result.key) settle();
    }
    if (result.drawnClass !== undefined) {
      stageTools.value = { ...stageTools.peek(), class: result.drawnClass };
    }
    if (result.focused !== undefined) setFocused(result.focused);
    setByKey(true);
    leave();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey) return;
    const { scene, isEditable } = options;
    const drawnClass = stageTools.peek().class;
    const state = { scene, focused: shownFocus, isEditable, drawnClass };
    const result = pressKey(state, event.key, event.shiftKey, event.altKey);
    if (!result) return;
    event.preventDefault();
    apply(result);
  };

  const handlers = {
    onPointerDown,
    onPointerMove,
    onPointerUp: () => gestures.release(),
    onPointerCancel: () => gestures.release(),
    onPointerLeave: leave,
    onKeyDown,
    onContextMenu: (event: MouseEvent) => {
      if (options.isEditable) event.preventDefault();
    },
    onDblClick: (event: MouseEvent) => {
      const isMoving = stageTools.peek().tool === "move";
      if (options.isEditable && isMoving) gestures.place(...placeOf(event));
    },
    onBlur: () => {
      setFocused(-1);
      settle();
    },
  };
  return { handlers, focused: shownFocus, isByKey, pointed };
}
