import { useEffect, useRef, useState } from "preact/hooks";

/** The width of an element in CSS pixels, followed as it changes: charts keep the size of their text. */
export function useWidth<Element extends HTMLElement>(initial: number) {
  const ref = useRef<Element>(null);
  const [width, setWidth] = useState(initial);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => {
      const found = Math.floor(element.clientWidth);
      if (found > 0) setWidth(found);
    };
    measure();
    if (typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { ref, width };
}
