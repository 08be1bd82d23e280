import { useEffect, useState } from "preact/hooks";
import type { Progress } from "../protocol";
import { ProgressNote } from "../shell";

const PATIENCE = 600; // milliseconds

/** Progress of what takes its time: a bar that comes and goes at once would make the page jump. */
export function SlowProgress(props: { progress: Progress | null; isWaiting: boolean }) {
  const [isSlow, setIsSlow] = useState(false);
  useEffect(() => {
    if (!props.isWaiting) {
      setIsSlow(false);
      return;
    }
    const timer = setTimeout(() => setIsSlow(true), PATIENCE);
    return () => clearTimeout(timer);
  }, [props.isWaiting]);
  return isSlow ? <ProgressNote progress={props.progress} /> : null;
}
