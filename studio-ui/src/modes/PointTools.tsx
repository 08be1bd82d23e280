import type { Scene } from "../protocol";
import { type StageTool, stageTools } from "../shell";
import { ClassMark } from "../stage/ClassMark";

const TOOLS: [StageTool, string][] = [
  ["move", "Drag"],
  ["draw", "Draw"],
  ["erase", "Erase"],
];

/** What a press on a stage of a lesson does; its points are not those of the playground. */
export function PointTools(props: { scene: Scene }) {
  const { tool, class: chosen } = stageTools.value;
  return (
    <div class="toolbar" role="toolbar" aria-label="Points">
      <fieldset class="segments" aria-label="Tool">
        {TOOLS.map(([own, title]) => (
          <button
            key={own}
            type="button"
            class="segment"
            aria-pressed={tool === own}
            data-testid={`lesson-tool-${own}`}
            onClick={() => {
              stageTools.value = { ...stageTools.value, tool: own };
            }}
          >
            {title}
          </button>
        ))}
      </fieldset>
      {props.scene.task === "classification" && (
        <fieldset class="segments" aria-label="Class to draw">
          {props.scene.classes.map((name, own) => (
            <button
              key={name}
              type="button"
              class="segment swatch"
              aria-pressed={chosen === own}
              aria-label={`Class ${name}`}
              title={`Class ${name}`}
              data-testid={`lesson-class-${own}`}
              onClick={() => {
                stageTools.value = { tool: tool === "erase" ? "draw" : tool, class: own };
              }}
            >
              <ClassMark own={own} />
            </button>
          ))}
        </fieldset>
      )}
    </div>
  );
}
