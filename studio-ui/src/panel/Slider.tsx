import { useId, useRef, useState } from "preact/hooks";
import { formatNumber, readNumber } from "../state/numbers";
import { placeOf, type SliderScale, stepped, valueAt } from "./scales";

export interface SliderProps {
  label: string;
  value: number;
  low: number;
  high: number;
  scale?: "linear" | "log";
  isInteger?: boolean;
  /** While it moves. */
  onInput: (value: number) => void;
  /** When it was let go. */
  onSettle?: (value: number) => void;
  format?: (value: number) => string;
  /** The number that a typed text means, NaN for none: reads what `format` writes. */
  read?: (text: string) => number;
  /** Said under the name while the pointer is on it, and to screen readers. */
  summary?: string;
  disabled?: boolean;
  testId?: string;
}

const PLACES = 1000;

/** A slider with a linear or logarithmic scale and a field to type the number. */
export function Slider(props: SliderProps) {
  const id = useId();
  const scale: SliderScale = {
    low: props.low,
    high: props.high,
    scale: props.scale ?? "linear",
    isInteger: props.isInteger ?? false,
  };
  const latest = useRef(props.value);
  latest.current = props.value;
  const show = props.format ?? ((value: number) => formatNumber(value));

  const move = (value: number) => {
    latest.current = value;
    props.onInput(value);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const direction = directionOf(event.key);
    if (direction === null) return;
    event.preventDefault();
    const value = stepped(latest.current, direction, scale);
    move(value);
    props.onSettle?.(value);
  };

  return (
    <div class="field slider" title={props.summary}>
      <div class="field-head">
        <label for={id}>{props.label}</label>
        <NumberField {...props} scaleOf={scale} text={show(props.value)} />
      </div>
      <input
        id={id}
        type="range"
        min={0}
        max={PLACES}
        step="any"
        value={placeOf(props.value, scale) * PLACES}
        aria-valuetext={show(props.value)}
        aria-description={props.summary}
        disabled={props.disabled}
        data-testid={props.testId}
        onInput={(event) => move(valueAt(Number(event.currentTarget.value) / PLACES, scale))}
        onChange={() => props.onSettle?.(latest.current)}
        onKeyDown={onKeyDown}
      />
    </div>
  );
}

function directionOf(key: string): 1 | -1 | null {
  if (key === "ArrowRight" || key === "ArrowUp") return 1;
  if (key === "ArrowLeft" || key === "ArrowDown") return -1;
  return null;
}

/** The value as text; while it is edited, what was typed so far. */
function NumberField(props: SliderProps & { scaleOf: SliderScale; text: string }) {
  const [typed, setTyped] = useState<string | null>(null);
  const finish = () => {
    if (typed === null) return;
    setTyped(null);
    const value = (props.read ?? readNumber)(typed);
    if (!Number.isFinite(value)) return;
    const inside = Math.min(props.high, Math.max(props.low, value));
    const whole = props.scaleOf.isInteger ? Math.round(inside) : inside;
    props.onInput(whole);
    props.onSettle?.(whole);
  };
  return (
    <input
      type="text"
      inputMode="decimal"
      class="number-field"
      aria-label={`${props.label}, as a number`}
      disabled={props.disabled}
      value={typed ?? props.text}
      data-testid={props.testId ? `${props.testId}-number` : undefined}
      onFocus={(event) => event.currentTarget.select()}
      onInput={(event) => setTyped(event.currentTarget.value)}
      onBlur={finish}
      onKeyDown={(event) => {
        if (event.key === "Enter") finish();
        if (event.key === "Escape") setTyped(null);
      }}
    />
  );
}
