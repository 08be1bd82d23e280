/**
 * The two secrets of this tab: the token of the link, used once, and the key it is exchanged for.
 *
 * The token stands in the address after `#`, which browsers never send; it is taken out of the
 * address bar (and of the history) at once. The key lives as long as the tab.
 */

const KEY = "margrove-studio-key";

/** The token in a link or a fragment, or null. */
export function tokenIn(text: string): string | null {
  const match = /(?:^|[#&])token=([A-Za-z0-9_-]+)/.exec(text.trim());
  return match?.[1] ?? null;
}

/** Takes the token out of the address bar. */
export function takeToken(): string | null {
  const token = tokenIn(window.location.hash);
  if (token !== null) {
    const { pathname, search } = window.location;
    window.history.replaceState(null, "", pathname + search);
  }
  return token;
}

export function storedKey(): string | null {
  try {
    return window.sessionStorage.getItem(KEY);
  } catch {
    return null; // Storage can be switched off; the key then lives in memory alone.
  }
}

export function storeKey(key: string | null): void {
  try {
    if (key === null) window.sessionStorage.removeItem(KEY);
    else window.sessionStorage.setItem(KEY, key);
  } catch {
    // As above.
  }
}
