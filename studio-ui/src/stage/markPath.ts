import { drawMark } from "./marks";
import type { Pen } from "./pen";

/** The outline of a class's mark as the text of an SVG path. */
export function markPath(own: number, x: number, y: number, radius: number): string {
  let path = "";
  const pen: Pick<Pen, "circle" | "path"> = {
    circle: (cx, cy, r) => {
      path = `M${cx - r} ${cy}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
    },
    path: (places) => {
      path = `M${Array.from(places).join(" ")}Z`;
    },
  };
  drawMark(pen, own, x, y, radius, {});
  return path;
}
