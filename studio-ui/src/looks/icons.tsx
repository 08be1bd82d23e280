/** Small drawings for buttons; their names stand beside them or in `aria-label`. */

const PATHS = {
  move: "M8 1.5v13M1.5 8h13M8 1.5 6 3.5M8 1.5l2 2M8 14.5l-2-2M8 14.5l2-2M1.5 8l2-2M1.5 8l2 2M14.5 8l-2-2M14.5 8l-2 2",
  draw: "M10.8 2.4l2.8 2.8L5.4 13.4l-3.5.7.7-3.5zM9 4.2 11.8 7",
  erase: "M6 13.5h7.5M8.8 2.7l4.5 4.5-6.2 6.3H4.6L2.2 11a1 1 0 0 1 0-1.4zM5.3 6.2l4.5 4.5",
  undo: "M6 3 2.5 6.5 6 10M2.5 6.5H10a3.5 3.5 0 0 1 0 7H6",
  redo: "M10 3l3.5 3.5L10 10M13.5 6.5H6a3.5 3.5 0 0 0 0 7h4",
  clear: "M3 4h10M6.5 4V2.5h3V4M4.5 4l.6 9.5h5.8L11.500 4",
  copy: "M5.500 5.500h8v8h-8zM10.500 5.500v-3h-8v8h3",
  download: "M8 2v8.500M4.500 7 8 10.500 11.500 7M2.500 13.500h11",
  upload: "M8 10.500V2M4.500 5.500 8 2l3.500 3.500M2.500 13.500h11",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1.200v1.600M8 13.200v1.600M1.200 8h1.600M13.200 8h1.600M3.200 3.200l1.100 1.100M11.700 11.700l1.100 1.100M3.200 12.800l1.100-1.100M11.700 4.300l1.100-1.100",
  moon: "M13.500 9.600A5.800 5.800 0 0 1 6.400 2.500a5.800 5.800 0 1 0 7.100 7.100z",
  auto: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 2v12M8 5.500h5.400M8 8h6M8 10.500h5.400",
  projector: "M2 3h12v8H2zM8 11v3M5 14.500h6M5.500 7h5M9 5.500 10.500 7 9 8.500",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.4"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
