import type { Table } from "../../protocol";
import { counted } from "../../shell";
import { percent } from "../../views/numbers";
import { isValue } from "./TableChoices";

/** What the columns of a table are. */
export function ColumnsTable(props: {
  table: Table;
  target: string | null;
  features: [string, string] | null;
}) {
  const { table } = props;
  const axes = isValue(table, props.target) ? props.features?.slice(0, 1) : props.features;
  return (
    <div
      class="v-table-box columns-table"
      tabIndex={0}
      role="region"
      aria-label="Columns"
      data-testid="columns"
    >
      <table class="v-table">
        <caption>
          {`${table.name}: ${counted(table.rows, "row")}, ${counted(table.columns.length, "column")}`}
        </caption>
        <thead>
          <tr>
            <th scope="col">column</th>
            <th scope="col">type</th>
            <th scope="col" class="v-number">
              distinct
            </th>
            <th scope="col" class="v-number">
              missing
            </th>
            <th scope="col">examples</th>
          </tr>
        </thead>
        <tbody>
          {table.columns.map((column) => (
            <tr key={column.name} class={column.name === props.target ? "is-chosen" : ""}>
              <th scope="row">
                {column.name}
                {column.name === props.target && <span class="gains-chosen">target</span>}
                {axes?.includes(column.name) && <span class="gains-chosen is-feature">axis</span>}
              </th>
              <td>{column.type}</td>
              <td class="v-number">{column.distinct.toLocaleString("en")}</td>
              <td class="v-number">{missing(column.missing, table.rows)}</td>
              <td class="columns-examples">{column.examples.join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function missing(count: number, rows: number): string {
  if (count === 0) return "0";
  return `${count.toLocaleString("en")} (${percent(rows > 0 ? count / rows : 0)})`;
}
