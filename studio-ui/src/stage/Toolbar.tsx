import { Icon, type IconName } from "../looks/icons";
import { canRedo, canUndo, changeScene, redo, scene, task, undo } from "../state/scene";
import { ClassMark } from "./ClassMark";
import { MOST_CLASSES } from "./edits";
import { type StageTool, stageTools } from "./tools";

const TOOLS: [StageTool, string, string][] = [
  ["move", "Drag", "Drag points; a double click draws one"],
  ["draw", "Draw", "Draw points of the chosen class"],
  ["erase", "Erase", "Erase points; so does the right button"],
];

/** Tools of the editable stage, the class to draw, undo and redo. */
export function Toolbar() {
  const { tool, class: own } = stageTools.value;
  const choose = (change: Partial<typeof stageTools.value>) => {
    stageTools.value = { ...stageTools.peek(), ...change };
  };
  return (
    <div class="toolbar" role="toolbar" aria-label="Points">
      <fieldset class="segments" aria-label="Tool">
        {TOOLS.map(([name, title, summary]) => (
          <button
            key={name}
            type="button"
            class="segment"
            aria-pressed={tool === name}
            title={summary}
            data-testid={`tool-${name}`}
            onClick={() => choose({ tool: name })}
          >
            <Icon name={name as IconName} />
            {title}
          </button>
        ))}
      </fieldset>
      {task.value === "classification" && (
        <fieldset class="segments" aria-label="Class to draw">
          {Array.from({ length: MOST_CLASSES }, (_, number) => (
            <button
              key={number}
              type="button"
              class="segment swatch"
              aria-pressed={own === number}
              aria-label={`Class ${className(number)}, key ${number + 1}`}
              title={`Class ${className(number)} (key ${number + 1})`}
              data-testid={`class-${number}`}
              onClick={() => choose({ class: number, tool: tool === "erase" ? "draw" : tool })}
            >
              <ClassMark own={number} />
            </button>
          ))}
        </fieldset>
      )}
      <div class="segments">
        <ToolButton name="undo" title="Undo" isOff={!canUndo.value} onClick={undo} />
        <ToolButton name="redo" title="Redo" isOff={!canRedo.value} onClick={redo} />
        <ToolButton
          name="clear"
          title="Erase all points"
          isOff={scene.value.x.length === 0}
          onClick={() => {
            changeScene({ x: [], y: [] });
            choose({ tool: "draw" });
          }}
        />
      </div>
    </div>
  );
}

function className(number: number): string {
  return scene.value.classes[number] ?? String.fromCharCode(65 + number);
}

function ToolButton(props: { name: IconName; title: string; isOff: boolean; onClick: () => void }) {
  return (
    <button
      type="button"
      class="segment"
      aria-label={props.title}
      title={props.title}
      disabled={props.isOff}
      data-testid={props.name}
      onClick={props.onClick}
    >
      <Icon name={props.name} />
    </button>
  );
}
