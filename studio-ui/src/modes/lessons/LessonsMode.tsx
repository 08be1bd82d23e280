import { useEffect, useRef, useState } from "preact/hooks";
import type { Lesson, Scene } from "../../protocol";
import { catalogue, Note } from "../../shell";
import { LessonStage } from "./LessonStage";
import { changeProgress, lessonProgress } from "./progress";
import { Question } from "./Question";

/** The lessons: a list, and the one that is open. */
export function LessonsMode() {
  const lessons = catalogue.value?.lessons ?? [];
  const { open, done } = lessonProgress.value;
  const isMoved = useRef(false);
  const place = Math.max(
    0,
    lessons.findIndex((own) => own.name === open),
  );
  const lesson = lessons[place];
  if (!lesson) {
    return (
      <div class="mode">
        <Note>There are no lessons.</Note>
      </div>
    );
  }
  const goTo = (next: Lesson | undefined) => {
    isMoved.current = true;
    if (next) changeProgress({ open: next.name });
  };
  return (
    <div class="mode mode-lessons">
      <LessonList lessons={lessons} open={lesson.name} done={done} onOpen={goTo} />
      <LessonView
        key={lesson.name}
        lesson={lesson}
        place={place}
        isMoved={isMoved.current}
        count={lessons.length}
        onPrevious={place > 0 ? () => goTo(lessons[place - 1]) : undefined}
        onNext={place < lessons.length - 1 ? () => goTo(lessons[place + 1]) : undefined}
      />
    </div>
  );
}

function LessonList(props: {
  lessons: Lesson[];
  open: string;
  done: string[];
  onOpen: (lesson: Lesson) => void;
}) {
  const count = props.lessons.filter((own) => props.done.includes(own.name)).length;
  return (
    <nav class="lesson-list" aria-label="Lessons">
      <p class="lesson-count">
        <progress value={count} max={props.lessons.length} aria-label="Lessons done" />
        <span data-testid="lessons-done">{`${count} of ${props.lessons.length} done`}</span>
      </p>
      <ol>
        {props.lessons.map((lesson) => {
          const isDone = props.done.includes(lesson.name);
          return (
            <li key={lesson.name}>
              <button
                type="button"
                class="lesson-link"
                aria-current={lesson.name === props.open ? "page" : undefined}
                data-testid={`lesson-${lesson.name}`}
                onClick={() => props.onOpen(lesson)}
              >
                <span class={isDone ? "lesson-mark is-done" : "lesson-mark"} aria-hidden="true">
                  {isDone ? "✓" : ""}
                </span>
                {lesson.title}
                {isDone && <span class="v-hidden"> (done)</span>}
              </button>
            </li>
          );
        })}
      </ol>
      <label class="v-field lesson-menu">
        <span>Lesson</span>
        <select
          value={props.open}
          data-testid="lesson-menu"
          onChange={(event) => {
            const name = event.currentTarget.value;
            const chosen = props.lessons.find((own) => own.name === name);
            if (chosen) props.onOpen(chosen);
          }}
        >
          {props.lessons.map((lesson) => (
            <option key={lesson.name} value={lesson.name}>
              {`${props.done.includes(lesson.name) ? "✓ " : ""}${lesson.title}`}
            </option>
          ))}
        </select>
      </label>
    </nav>
  );
}

/** Pictures side by side need all of the width. */
function isWideStage(lesson: Lesson): boolean {
  return lesson.stage === "compare" || lesson.stage === "map";
}

function LessonView(props: {
  lesson: Lesson;
  place: number;
  count: number;
  /** Whether it was gone to from another lesson. */
  isMoved: boolean;
  onPrevious?: () => void;
  onNext?: () => void;
}) {
  const { lesson } = props;
  const [scene, setScene] = useState<Scene | null>(lesson.scene);
  const head = useRef<HTMLHeadingElement>(null);
  // After a change of lesson, readers and keyboards begin at its title; not when the mode opens.
  useEffect(() => {
    if (props.isMoved) head.current?.focus();
  }, [props.isMoved]);
  return (
    <article class={isWideStage(lesson) ? "lesson is-wide" : "lesson"} data-testid="lesson">
      <div class="lesson-text">
        <div>
          <p class="v-faint">{`Lesson ${props.place + 1} of ${props.count}`}</p>
          <h2 ref={head} tabIndex={-1}>
            {lesson.title}
          </h2>
          {lesson.paragraphs.map((text) => (
            <p key={text}>{text}</p>
          ))}
        </div>
        <div class="lesson-ask">
          <Question lesson={lesson} scene={scene} />
          <div class="lesson-ways">
            <button
              type="button"
              class="v-tool"
              disabled={!props.onPrevious}
              data-testid="lesson-previous"
              onClick={props.onPrevious}
            >
              ← Previous
            </button>
            <button
              type="button"
              class="v-tool"
              disabled={!props.onNext}
              data-testid="lesson-next"
              onClick={props.onNext}
            >
              Next →
            </button>
          </div>
        </div>
      </div>
      <div class="lesson-stage">
        <LessonStage lesson={lesson} scene={scene} onScene={setScene} />
      </div>
    </article>
  );
}
