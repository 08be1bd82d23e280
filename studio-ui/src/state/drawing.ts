import { signal } from "@preact/signals";

export interface Drawing {
  preset: string;
  size: number;
  noise: number;
  seed: number;
}

/** The preset that the points were drawn from; null for a scene that came from elsewhere. */
export const drawing = signal<Drawing | null>(null);
