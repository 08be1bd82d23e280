import type { Table } from "../../protocol";
import { change, openTable } from "./openTable";

const PRINCIPAL = "";

/** The target, and the two axes of the playground. */
export function TableChoices(props: { table: Table }) {
  const { target, features } = openTable.value;
  const others = props.table.columns.filter((column) => column.name !== target);
  // Values of a number are drawn over one column: the other axis is the target itself.
  const places: (0 | 1)[] = isValue(props.table, target) ? [0] : [0, 1];
  const choose = (place: 0 | 1, name: string) => {
    const names = others.map((column) => column.name);
    change({ features: chosenFeatures(features, place, name, names) });
  };
  return (
    <div class="v-row table-choices">
      <label class="v-field">
        <span>Target</span>
        <select
          value={target ?? ""}
          data-testid="target"
          onChange={(event) => {
            const chosen = event.currentTarget.value;
            const isAxis = features?.includes(chosen);
            change({ target: chosen, board: null, ...(isAxis ? { features: null } : {}) });
          }}
        >
          {props.table.columns.map((column) => (
            <option key={column.name} value={column.name}>
              {column.name}
            </option>
          ))}
        </select>
      </label>
      {places.map((place) => (
        <label key={place} class="v-field">
          <span>{place === 0 ? "Axis to the right" : "Axis upwards"}</span>
          <select
            value={features?.[place] ?? PRINCIPAL}
            data-testid={`feature-${place}`}
            onChange={(event) => choose(place, event.currentTarget.value)}
          >
            <option value={PRINCIPAL}>{`principal component ${place + 1}`}</option>
            {others.map((column) => (
              <option key={column.name} value={column.name}>
                {column.name}
              </option>
            ))}
          </select>
        </label>
      ))}
    </div>
  );
}

/** Whether a column would be predicted as a number. */
export function isValue(table: Table, name: string | null): boolean {
  return table.columns.find((own) => own.name === name)?.task === "regression";
}

/** Two different columns, or principal components on both axes: one alone would mean nothing. */
export function chosenFeatures(
  features: [string, string] | null,
  place: 0 | 1,
  name: string,
  others: string[],
): [string, string] | null {
  if (name === PRINCIPAL) return null;
  const other = features?.[place === 0 ? 1 : 0];
  const partner = other && other !== name ? other : others.find((own) => own !== name);
  if (partner === undefined) return null;
  return place === 0 ? [name, partner] : [partner, name];
}
