/** Numbers from a text: between commas, spaces or lines; null where something else stands. */
export function numbersIn(text: string): number[] | null {
  const words = text.split(/[\s,;]+/).filter((word) => word !== "");
  const numbers = words.map(Number);
  return numbers.every(Number.isFinite) ? numbers : null;
}
