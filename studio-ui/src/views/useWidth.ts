import { useEffect, useRef, useState } from "preact/hooks";
import { projector } from "../looks/theme";

const NORMAL = 16; // pixels of the page's letters, unless it is shown by a projector

/**
 * The width of an element, followed as it changes: charts keep the size of their letters. Both are
 * in units of which `zoom` pixels are one, so that charts grow with the letters of the page.
 */
export function useWidth<Element extends HTMLElement>(initial: number) {
  const ref = useRef<Element>(null);
  const [pixels, setPixels] = useState(initial);
  const zoom = zoomNow(projector.value);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => {
      const found = Math.floor(element.clientWidth);
      if (found > 0) setPixels(found);
    };
    measure();
    if (typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { ref, width: pixels / zoom, zoom };
}

/** The argument is read by whoever calls it, so that a component is drawn again when it changes. */
function zoomNow(_isLarge: boolean): number {
  const size = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  return size > 0 ? size / NORMAL : 1;
}
