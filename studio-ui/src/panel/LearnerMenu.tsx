import { useId } from "preact/hooks";
import type { Learner, Task } from "../protocol";
import { catalogue } from "../state/scene";

export interface LearnerMenuProps {
  task: Task;
  value: string;
  onChange: (name: string) => void;
  label?: string;
  testId?: string;
  /** Which learners are offered; all of the task unless told. */
  filter?: (learner: Learner) => boolean;
}

const FAMILIES: [Learner["family"], string][] = [
  ["margin", "Margin machines"],
  ["tree", "Trees"],
  ["ensemble", "Groves of trees"],
];

/** All learners of a task, by family. */
export function LearnerMenu(props: LearnerMenuProps) {
  const id = useId();
  const filter = props.filter ?? (() => true);
  const learners = (catalogue.value?.learners ?? []).filter(
    (learner) => learner.task === props.task && filter(learner),
  );
  return (
    <div class="field">
      <label class="field-head" for={id}>
        {props.label ?? "Learner"}
      </label>
      <select
        id={id}
        class="strong-select"
        data-testid={props.testId ?? "learner"}
        value={props.value}
        title={learners.find((learner) => learner.name === props.value)?.title}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      >
        {FAMILIES.map(([family, title]) => {
          const own = learners.filter((learner) => learner.family === family);
          return own.length === 0 ? null : (
            <optgroup key={family} label={title}>
              {own.map((learner) => (
                <option key={learner.name} value={learner.name}>
                  {learner.title}
                </option>
              ))}
            </optgroup>
          );
        })}
      </select>
    </div>
  );
}
