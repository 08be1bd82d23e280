/** Light or dark as the system has it until somebody chooses; a larger size for projectors. */

import { effect, signal } from "@preact/signals";
import { refreshPalette } from "./colours";

export type Theme = "auto" | "light" | "dark";

export const theme = signal<Theme>(stored("theme", ["auto", "light", "dark"], "auto"));
export const projector = signal(stored("size", ["normal", "projector"], "normal") === "projector");

function stored<Choice extends string>(name: string, choices: Choice[], otherwise: Choice): Choice {
  try {
    const found = window.localStorage.getItem(`margrove-studio-${name}`) as Choice | null;
    return found !== null && choices.includes(found) ? found : otherwise;
  } catch {
    return otherwise;
  }
}

function store(name: string, value: string): void {
  try {
    window.localStorage.setItem(`margrove-studio-${name}`, value);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

/** Lets the page follow the choices. */
export function followTheme(): void {
  const root = document.documentElement;
  effect(() => {
    if (theme.value === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme.value);
    store("theme", theme.value);
    refreshPalette();
  });
  effect(() => {
    root.classList.toggle("projector", projector.value);
    store("size", projector.value ? "projector" : "normal");
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refreshPalette);
}
