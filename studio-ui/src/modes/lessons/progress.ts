import { signal } from "@preact/signals";

/** What of the lessons was done in this tab. */
export interface LessonProgress {
  /** Names of lessons whose question was answered rightly. */
  done: string[];
  /** The lesson that was open. */
  open: string | null;
  /** What was answered last, by lesson. */
  answers: Record<string, string>;
}

const STORED = "margrove-studio-lessons";
const NOTHING: LessonProgress = { done: [], open: null, answers: {} };

export const lessonProgress = signal<LessonProgress>(storedProgress());

export function storedProgress(): LessonProgress {
  try {
    return readProgress(JSON.parse(window.sessionStorage.getItem(STORED) ?? "null"));
  } catch {
    return NOTHING; // No storage, or nothing that can be read: begin anew.
  }
}

/** Anything may stand in a storage; only what fits is taken. */
export function readProgress(found: unknown): LessonProgress {
  if (typeof found !== "object" || found === null) return NOTHING;
  const { done, open, answers } = found as Record<string, unknown>;
  const isText = (own: unknown): own is string => typeof own === "string";
  const pairs = typeof answers === "object" && answers !== null ? Object.entries(answers) : [];
  return {
    done: Array.isArray(done) ? done.filter(isText) : [],
    open: isText(open) ? open : null,
    answers: Object.fromEntries(pairs.filter((pair): pair is [string, string] => isText(pair[1]))),
  };
}

export function changeProgress(change: Partial<LessonProgress>): void {
  lessonProgress.value = { ...lessonProgress.value, ...change };
  try {
    window.sessionStorage.setItem(STORED, JSON.stringify(lessonProgress.value));
  } catch {
    // Kept in memory alone.
  }
}

export function markAnswered(name: string, answer: string, isRight: boolean): void {
  const { done, answers } = lessonProgress.value;
  changeProgress({
    answers: { ...answers, [name]: answer },
    done: isRight && !done.includes(name) ? [...done, name] : done,
  });
}
