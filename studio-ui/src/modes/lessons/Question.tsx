import { useState } from "preact/hooks";
import type { Checked, Lesson, Scene } from "../../protocol";
import { ask, ErrorNote, isSuperseded } from "../../shell";
import { lessonProgress, markAnswered } from "./progress";

/** The question of a lesson; the library knows whether the answer is right, and why. */
export function Question(props: { lesson: Lesson; scene: Scene | null }) {
  const { lesson } = props;
  const [answer, setAnswer] = useState(lessonProgress.value.answers[lesson.name] ?? "");
  const [checked, setChecked] = useState<Checked | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setIsBusy] = useState(false);
  const check = async (event: Event) => {
    event.preventDefault();
    if (answer.trim() === "" || isBusy) return;
    setIsBusy(true);
    setError(null);
    try {
      const given = answer.trim().replace(",", ".");
      const told = await ask(
        {
          kind: "check",
          lesson: lesson.name,
          answer: lesson.choices.length > 0 ? answer : given,
          scene: props.scene,
        },
        { channel: "check" },
      );
      setChecked(told);
      markAnswered(lesson.name, answer, told.isRight);
    } catch (caught) {
      if (!isSuperseded(caught)) setError(caught as Error);
    }
    setIsBusy(false);
  };
  const change = (next: string) => {
    setAnswer(next);
    setChecked(null);
  };
  return (
    <form class="question" onSubmit={check} data-testid="question">
      {lesson.choices.length > 0 ? (
        <fieldset class="v-choices">
          <legend class="question-text">{lesson.question}</legend>
          {lesson.choices.map((choice, k) => (
            <label key={choice}>
              <input
                type="radio"
                name={`answer-${lesson.name}`}
                checked={answer === choice}
                data-testid={`choice-${k}`}
                onChange={() => change(choice)}
              />
              {choice}
            </label>
          ))}
        </fieldset>
      ) : (
        <label class="v-field">
          <span class="question-text">{lesson.question}</span>
          <input
            type="text"
            inputMode="decimal"
            autocomplete="off"
            value={answer}
            data-testid="answer"
            onInput={(event) => change(event.currentTarget.value)}
          />
        </label>
      )}
      <div class="question-row">
        <button
          type="submit"
          class="v-tool is-main"
          aria-disabled={isBusy || answer.trim() === ""}
          data-testid="check"
        >
          {isBusy ? "Checking…" : "Check"}
        </button>
        {lesson.hint && (
          <details class="v-details question-hint">
            <summary>Hint</summary>
            <p>{lesson.hint}</p>
          </details>
        )}
      </div>
      <ErrorNote error={error} />
      <div role="status" data-testid="feedback">
        {checked && (
          <p class={checked.isRight ? "feedback is-right" : "feedback is-wrong"}>
            <b aria-hidden="true">{checked.isRight ? "✓ " : "✗ "}</b>
            {checked.text}
          </p>
        )}
      </div>
    </form>
  );
}
