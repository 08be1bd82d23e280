import { signal } from "@preact/signals";

export type StageTool = "move" | "draw" | "erase";

/** What a press on an editable stage does, and the class of the points it draws. */
export const stageTools = signal<{ tool: StageTool; class: number }>({ tool: "move", class: 0 });
