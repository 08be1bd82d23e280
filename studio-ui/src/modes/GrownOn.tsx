import { catalogue } from "../shell";

/** Stands for the points of the playground, among the names of the lectures' tables. */
export const POINTS = "points";

/** The points of the playground, or one of the tables of the lectures. */
export function GrownOn(props: {
  label: string;
  value: string;
  testId: string;
  onChange: (name: string) => void;
}) {
  return (
    <label class="v-field">
      <span>{props.label}</span>
      <select
        value={props.value}
        data-testid={props.testId}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      >
        <option value={POINTS}>the points of the playground</option>
        {catalogue.value?.tables.map((table) => (
          <option key={table.name} value={table.name}>
            {table.title}
          </option>
        ))}
      </select>
    </label>
  );
}
