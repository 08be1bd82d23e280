import { classColour } from "../looks/colours";
import { markPath } from "./markPath";

/** The sign of a class as it stands on the stage; hollow for points kept for testing. */
export function ClassMark(props: { own: number; isHollow?: boolean }) {
  const colour = classColour(props.own);
  return (
    <svg class="class-mark" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path
        d={markPath(props.own, 8, 8, props.isHollow ? 4.4 : 5.2)}
        fill={props.isHollow ? "none" : colour}
        stroke={colour}
        stroke-width={props.isHollow ? 2 : 0}
      />
    </svg>
  );
}
