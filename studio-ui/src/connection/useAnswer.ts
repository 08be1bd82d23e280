/**
 * Answers in components: the last one stays on the page while the next is made, and goes when the
 * next one fails, for it would pass for an answer to what was asked.
 *
 * While a request is in flight the newest wish waits and the ones between are forgotten, so that a
 * dragged point gets as many pictures as the library can make, and the last one is always made.
 */

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Picture, Progress, Scene } from "../protocol";
import { type Answers, type AskKind, type AskOf, isSuperseded } from "./answers";
import { isEqual } from "./isEqual";
import { ask as askStudio, cancel } from "./studio";

export interface Answer<Value> {
  /** The newest answer there is, perhaps to an older request. */
  value: Value | null;
  error: Error | null;
  progress: Progress | null;
  /** Whether a newer answer is on its way. */
  isWaiting: boolean;
}

const NOTHING: Answer<never> = { value: null, error: null, progress: null, isWaiting: false };

/** At most one request in flight, the newest wins. */
export class Follower<Kind extends AskKind> {
  private isBusy = false;
  private wish: AskOf<Kind> | null = null;
  private isDropped = false;
  /** Another one after each `clear`: an answer to what was asked before is not wanted any more. */
  private round = 0;
  private current: Answer<Answers[Kind]> = NOTHING;

  constructor(
    private readonly channel: string,
    private readonly onAnswer: (answer: Answer<Answers[Kind]>) => void,
    private readonly ask: typeof askStudio = askStudio,
  ) {}

  want(request: AskOf<Kind>): void {
    this.wish = request;
    this.tell({ isWaiting: true });
    if (!this.isBusy) void this.next();
  }

  /** Forgets the answer and what is wished. */
  clear(): void {
    this.wish = null;
    this.round += 1;
    this.current = NOTHING;
    this.onAnswer(NOTHING);
  }

  drop(): void {
    this.isDropped = true;
    this.wish = null;
    if (this.isBusy) cancel(this.channel);
  }

  private async next(): Promise<void> {
    const request = this.wish;
    if (!request) return;
    this.wish = null;
    this.isBusy = true;
    const { round } = this;
    const tell = (change: Partial<Answer<Answers[Kind]>>) => {
      if (round === this.round) this.tell(change);
    };
    try {
      const value = await this.ask<Kind>(request, {
        channel: this.channel,
        onProgress: (progress) => tell({ progress }),
      });
      tell({ value, error: null, progress: null, isWaiting: this.wish !== null });
    } catch (error) {
      const rest = { progress: null, isWaiting: this.wish !== null };
      if (isSuperseded(error)) tell({ error: null, ...rest });
      else tell({ value: null, error: error as Error, ...rest });
    }
    this.isBusy = false;
    void this.next();
  }

  private tell(change: Partial<Answer<Answers[Kind]>>): void {
    if (this.isDropped) return;
    this.current = { ...this.current, ...change };
    this.onAnswer(this.current);
  }
}

/** The answer to a request; null asks nothing. Requests are compared by content. */
export function useAnswer<Kind extends AskKind>(
  request: (AskOf<Kind> & { kind: Kind }) | null,
  channel: string,
): Answer<Answers[Kind]> {
  const [answer, setAnswer] = useState<Answer<Answers[Kind]>>(NOTHING);
  const follower = useRef<Follower<Kind> | null>(null);
  // Layout effects, for they do not wait for the next frame of the screen to ask.
  useLayoutEffect(() => {
    const own = new Follower<Kind>(channel, setAnswer);
    follower.current = own;
    return () => own.drop();
  }, [channel]);
  const asked = useRef(request);
  if (!isEqual(asked.current, request)) asked.current = request;
  const content = asked.current;
  useLayoutEffect(() => {
    if (content) follower.current?.want(content);
    else follower.current?.clear();
  }, [content, channel]);
  return answer;
}

export interface PictureOptions {
  /** Cells along each side; 120 unless told. */
  grid?: number;
  surface?: "score" | "probability";
}

/** The picture of a scene, made anew whenever the scene changes. */
export function usePicture(
  scene: Scene | null,
  channel: string,
  options: PictureOptions = {},
): Answer<Picture> {
  const grid = options.grid ?? 120;
  const surface = options.surface ?? "score";
  const request = useMemo(
    () =>
      scene && scene.x.length > 0
        ? ({ kind: "picture", scene, grid: [grid, grid], surface } as AskOf<"picture">)
        : null,
    [scene, grid, surface],
  );
  return useAnswer<"picture">(request, channel);
}
