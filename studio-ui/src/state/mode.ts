import { signal } from "@preact/signals";
import type { ComponentType } from "preact";

export interface ModeEntry {
  /** Stands in the address: `#steps`. */
  name: string;
  title: string;
  component: ComponentType;
}

export const mode = signal("playground");

/** Shows a mode and writes its name into the address. */
export function openMode(name: string): void {
  mode.value = name;
  const address = new URL(window.location.href);
  address.hash = name;
  window.history.replaceState(null, "", address);
}

/** Takes the mode from the address, if it names one of these. */
export function modeFromAddress(names: string[]): void {
  const named = window.location.hash.slice(1);
  if (names.includes(named)) mode.value = named;
}
