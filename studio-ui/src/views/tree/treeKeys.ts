import type { Layout, Placed } from "./layout";

export interface TreeActions {
  focus: (own: Placed) => void;
  toggle: (own: Placed) => void;
  zoom: (factor: number) => void;
  pan: (x: number, y: number) => void;
  fit: () => void;
}

const STEP = 60; // of a pan, in pixels

/** What a key does in a tree, as other trees on screens do it; whether it did anything. */
export function keyed(
  event: KeyboardEvent,
  layout: Layout,
  focused: number,
  actions: TreeActions,
): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (event.shiftKey && event.key.startsWith("Arrow")) return panned(event.key, actions);
  switch (event.key) {
    case "+":
    case "=":
      actions.zoom(1.3);
      return true;
    case "-":
      actions.zoom(1 / 1.3);
      return true;
    case "0":
      actions.fit();
      return true;
    default:
      return walked(event.key, layout, focused, actions);
  }
}

function panned(key: string, actions: TreeActions): boolean {
  const moves: Record<string, [number, number]> = {
    ArrowLeft: [STEP, 0],
    ArrowRight: [-STEP, 0],
    ArrowUp: [0, STEP],
    ArrowDown: [0, -STEP],
  };
  const move = moves[key];
  if (move) actions.pan(...move);
  return move !== undefined;
}

function walked(key: string, layout: Layout, focused: number, actions: TreeActions): boolean {
  const index = layout.indexOf.get(focused) ?? 0;
  const own = layout.placed[index];
  if (!own) return false;
  const goTo = (target: Placed | undefined) => {
    if (target) actions.focus(target);
    return true;
  };
  switch (key) {
    case "ArrowDown":
      return goTo(layout.placed[index + 1]);
    case "ArrowUp":
      return goTo(layout.placed[index - 1]);
    case "ArrowRight":
      if (own.isCollapsed) actions.toggle(own);
      else if (!own.isLeaf) goTo(layout.placed[index + 1]);
      return true;
    case "ArrowLeft":
      if (!own.isLeaf && !own.isCollapsed) actions.toggle(own);
      else goTo(layout.placed[own.above]);
      return true;
    case "Home":
      return goTo(layout.placed[0]);
    case "End":
      return goTo(layout.placed[layout.placed.length - 1]);
    case "Enter":
    case " ":
      actions.toggle(own);
      return true;
    default:
      return false;
  }
}
