import { useEffect, useRef, useState } from "preact/hooks";
import { playerKey } from "./stepKeys";

export const SPEEDS = [0.5, 1, 2, 4, 8, 16];

export interface Player {
  number: number;
  isPlaying: boolean;
  /** Steps a second. */
  speed: number;
  setSpeed: (speed: number) => void;
  seek: (number: number) => void;
  toggle: () => void;
}

/** Which step is shown; while it plays, the next one comes when the current one is on the page. */
export function usePlayer(last: number, isReady: boolean, hasKeys: boolean): Player {
  const [wished, setWished] = useState(0);
  const [isPlaying, setIsPlaying] = useState(false);
  const [speed, setSpeed] = useState(2);
  const number = Math.min(wished, last);
  const seek = (to: number) => {
    setIsPlaying(false);
    setWished(Math.min(last, Math.max(0, to)));
  };
  const toggle = () => {
    if (!isPlaying && number >= last) setWished(0);
    setIsPlaying(!isPlaying);
  };
  useEffect(() => {
    if (!isPlaying || !isReady) return;
    if (number >= last) {
      setIsPlaying(false);
      return;
    }
    const timer = setTimeout(() => setWished(number + 1), 1000 / speed);
    return () => clearTimeout(timer);
  }, [isPlaying, isReady, number, last, speed]);

  const latest = useRef({ seek, toggle, number, last });
  latest.current = { seek, toggle, number, last };
  useEffect(() => {
    if (!hasKeys) return;
    const onKeyDown = (event: KeyboardEvent) => {
      const key = playerKey(event);
      if (!key) return;
      event.preventDefault();
      const now = latest.current;
      if (key === "toggle") now.toggle();
      else now.seek({ next: now.number + 1, back: now.number - 1, first: 0, last: now.last }[key]);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [hasKeys]);
  return { number, isPlaying, speed, setSpeed, seek, toggle };
}
