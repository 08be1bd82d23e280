/** A value with undo and redo. Changes with the same key in a row are one step: a drag, a slider. */

const LONGEST = 200;

export class History<Value> {
  private past: Value[] = [];
  private future: Value[] = [];
  private openKey: string | null = null;

  constructor(private current: Value) {}

  get value(): Value {
    return this.current;
  }

  get canUndo(): boolean {
    return this.past.length > 0;
  }

  get canRedo(): boolean {
    return this.future.length > 0;
  }

  change(next: Value, key: string | null = null): void {
    if (next === this.current) return;
    const continues = key !== null && key === this.openKey;
    if (!continues) {
      this.past.push(this.current);
      if (this.past.length > LONGEST) this.past.shift();
    }
    this.future = [];
    this.current = next;
    this.openKey = key;
  }

  /** The next change is a step of its own, whatever its key. */
  settle(): void {
    this.openKey = null;
  }

  undo(): void {
    const before = this.past.pop();
    if (before === undefined) return;
    this.future.push(this.current);
    this.current = before;
    this.openKey = null;
  }

  redo(): void {
    const after = this.future.pop();
    if (after === undefined) return;
    this.past.push(this.current);
    this.current = after;
    this.openKey = null;
  }
}
