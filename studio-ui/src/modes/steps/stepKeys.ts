/** What a key does to the player; null for keys that are not its own, or belong to what is focused. */
export type PlayerKey = "toggle" | "next" | "back" | "first" | "last";

const KEYS: Record<string, PlayerKey> = {
  " ": "toggle",
  ArrowRight: "next",
  ArrowLeft: "back",
  Home: "first",
  End: "last",
};

const KEEPS_ALL =
  "input, select, textarea, canvas, [role=tree], [role=grid], [role=slider], [role=application], [role=tab]";
const KEEPS_SPACE = "button, a, summary, [tabindex]";

export function playerKey(event: KeyboardEvent): PlayerKey | null {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) {
    return null;
  }
  const key = KEYS[event.key];
  if (!key) return null;
  const target = event.target instanceof Element ? event.target : null;
  if (target?.closest(KEEPS_ALL)) return null;
  if (key === "toggle" && target?.closest(KEEPS_SPACE)) return null;
  return key;
}
