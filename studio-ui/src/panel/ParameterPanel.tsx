import { useId } from "preact/hooks";
import type { Learner, Parameter, Value } from "../protocol";
import { defaultsOf, visibleParameters } from "../state/scene";
import { Slider } from "./Slider";

export interface ParameterPanelProps {
  learner: Learner;
  values: Record<string, Value>;
  /** `isSettled` is false while a slider moves. */
  onChange: (name: string, value: Value, isSettled: boolean) => void;
  /** Tells the test ids of several panels apart. */
  idPrefix?: string;
}

/** Sliders, menus and flags for the parameters of a learner, as its catalogue entry has them. */
export function ParameterPanel(props: ParameterPanelProps) {
  const { learner, values } = props;
  const defaults = defaultsOf(learner);
  const prefix = props.idPrefix ?? "parameter";
  return (
    <div class="parameters" data-testid={`${prefix}-panel`}>
      {visibleParameters(learner, values).map((own) => (
        <ParameterField
          key={`${learner.name}-${own.name}`}
          parameter={own}
          value={own.name in values ? (values[own.name] ?? null) : (defaults[own.name] ?? null)}
          testId={`${prefix}-${own.name}`}
          onChange={(value, isSettled) => props.onChange(own.name, value, isSettled)}
        />
      ))}
    </div>
  );
}

interface FieldProps {
  parameter: Parameter;
  value: Value;
  testId: string;
  onChange: (value: Value, isSettled: boolean) => void;
}

function ParameterField(props: FieldProps) {
  switch (props.parameter.kind) {
    case "flag":
      return <FlagField {...props} />;
    case "choice":
      return <ChoiceField {...props} />;
    default:
      return <NumberParameter {...props} />;
  }
}

function FlagField({ parameter, value, testId, onChange }: FieldProps) {
  return (
    <label class="field check" title={parameter.summary}>
      <input
        type="checkbox"
        checked={value === true}
        data-testid={testId}
        aria-description={parameter.summary}
        onChange={(event) => onChange(event.currentTarget.checked, true)}
      />
      <span>{parameter.title}</span>
    </label>
  );
}

function ChoiceField({ parameter, value, testId, onChange }: FieldProps) {
  const id = useId();
  const choices = [...(parameter.choices ?? [])];
  if (parameter.none !== undefined && !choices.some((choice) => choice.value === null)) {
    choices.unshift({ value: null, title: parameter.none });
  }
  const chosen = choices.findIndex((choice) => choice.value === value);
  const explanation = explanationOf(choices[chosen]?.title ?? "");
  return (
    <div class="field" title={parameter.summary}>
      <label class="field-head" for={id}>
        {parameter.title}
      </label>
      <select
        id={id}
        data-testid={testId}
        aria-description={parameter.summary}
        value={String(chosen)}
        onChange={(event) => {
          const choice = choices[Number(event.currentTarget.value)];
          if (choice) onChange(choice.value, true);
        }}
      >
        {choices.map((choice, number) => (
          <option key={choice.title} value={String(number)}>
            {shortTitle(choice.title)}
          </option>
        ))}
      </select>
      {explanation !== "" && <p class="hint">{explanation}</p>}
    </div>
  );
}

/** "gini: how often two rows differ" is a name and what it means: menus have room for the name. */
function shortTitle(title: string): string {
  return title.split(": ")[0] ?? title;
}

function explanationOf(title: string): string {
  return title.split(": ").slice(1).join(": ");
}

function NumberParameter({ parameter, value, testId, onChange }: FieldProps) {
  const low = parameter.low ?? 0;
  const high = parameter.high ?? 1;
  const start = typeof parameter.default === "number" ? parameter.default : middleOf(parameter);
  const shown = typeof value === "number" ? value : start;
  const isNone = value === null;
  return (
    <div class={parameter.none === undefined ? "" : "with-none"}>
      <Slider
        label={parameter.title}
        value={shown}
        low={low}
        high={high}
        scale={parameter.scale ?? "linear"}
        isInteger={parameter.kind === "integer"}
        summary={parameter.summary}
        disabled={isNone}
        format={isNone ? () => "–" : undefined}
        testId={testId}
        onInput={(next) => onChange(next, false)}
        onSettle={(next) => onChange(next, true)}
      />
      {parameter.none !== undefined && (
        <label class="check none-check">
          <input
            type="checkbox"
            checked={isNone}
            data-testid={`${testId}-none`}
            aria-label={`${parameter.title}: ${parameter.none}`}
            onChange={(event) => onChange(event.currentTarget.checked ? null : start, true)}
          />
          <span>{parameter.none}</span>
        </label>
      )}
    </div>
  );
}

/** Where the slider stands when "no limit" is taken back. */
function middleOf(parameter: Parameter): number {
  const low = parameter.low ?? 0;
  const high = parameter.high ?? 1;
  const middle =
    parameter.scale === "log" && low > 0 ? Math.sqrt(low * high) : low + (high - low) / 4;
  return parameter.kind === "integer" ? Math.round(middle) : Number(middle.toPrecision(2));
}
