import type { Step } from "../../protocol";
import { isSuperseded } from "../../shell";

export interface Loaded {
  step: Step | null;
  error: Error | null;
  isWaiting: boolean;
}

const KEPT = 80;

/**
 * The states after the steps of one fit: one request at a time, the newest wish first, and while
 * nothing is wished the step after the current one, so that playing does not wait.
 */
export class StepLoader {
  private readonly known = new Map<number, Step>();
  private wanted = 0;
  private last = 0;
  private isBusy = false;
  private isDropped = false;
  private error: Error | null = null;
  private shown: Step | null = null;

  constructor(
    private readonly ask: (number: number) => Promise<Step>,
    private readonly onLoaded: (loaded: Loaded) => void,
  ) {}

  want(number: number, last: number): void {
    this.wanted = number;
    this.last = last;
    this.error = null;
    this.tell();
    if (!this.isBusy) void this.next();
  }

  drop(): void {
    this.isDropped = true;
  }

  private async next(): Promise<void> {
    const number = this.missing();
    if (number === null || this.isDropped) return;
    this.isBusy = true;
    let isRefused = false;
    try {
      this.keep(number, await this.ask(number));
    } catch (error) {
      isRefused = true;
      if (number === this.wanted && !isSuperseded(error)) this.error = error as Error;
    }
    this.isBusy = false;
    this.tell();
    // A refused request is not repeated before there is another wish.
    if (!isRefused || number !== this.wanted) void this.next();
  }

  private missing(): number | null {
    if (!this.known.has(this.wanted)) return this.wanted;
    const ahead = this.wanted + 1;
    return ahead <= this.last && !this.known.has(ahead) ? ahead : null;
  }

  private keep(number: number, step: Step): void {
    this.known.set(number, step);
    if (this.known.size <= KEPT) return;
    const oldest = this.known.keys().next().value;
    if (oldest !== undefined) this.known.delete(oldest);
  }

  private tell(): void {
    if (this.isDropped) return;
    const step = this.known.get(this.wanted);
    if (step) this.shown = step;
    this.onLoaded({
      step: this.shown,
      error: this.error,
      isWaiting: !step && this.error === null,
    });
  }
}
