/** Colours for what CSS cannot reach: the canvas. Read from the page's variables, theme by theme. */

import { signal } from "@preact/signals";

export type Colour = [number, number, number];

export interface Palette {
  /** Of the classes and series. */
  k: string[];
  /** The same as numbers, for surfaces. */
  rgb: Colour[];
  paperRgb: Colour;
  paper: string;
  plate: string;
  ink: string;
  soft: string;
  faint: string;
  line: string;
  grid: string;
  accent: string;
  critical: string;
  isDark: boolean;
}

const SERIES = 7;

/** The CSS colour of a class (or of any series): safe for colour-blind eyes up to seven. */
export function classColour(number: number): string {
  return `var(--k${number % SERIES})`;
}

export const palette = signal<Palette>(readPalette());

export function refreshPalette(): void {
  palette.value = readPalette();
}

function readPalette(): Palette {
  const style = window.getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim() || "#808080";
  const k = Array.from({ length: SERIES }, (_, index) => colour(`k${index}`));
  const paper = colour("paper");
  return {
    k,
    rgb: k.map(rgbOf),
    paper,
    paperRgb: rgbOf(paper),
    plate: colour("plate"),
    ink: colour("ink"),
    soft: colour("soft"),
    faint: colour("faint"),
    line: colour("line"),
    grid: colour("grid"),
    accent: colour("accent"),
    critical: colour("critical"),
    isDark: style.colorScheme.includes("dark"),
  };
}

/** The numbers of a colour like #0072b2, or #fff as minified CSS has it. */
export function rgbOf(hex: string): Colour {
  const digits = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(hex)?.[1];
  if (!digits) return [128, 128, 128];
  const long = digits.length === 3 ? digits.replace(/./g, "$&$&") : digits;
  const value = Number.parseInt(long, 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}
