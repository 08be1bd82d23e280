/** Whether a panel stands beside the picture: on narrow windows it is above, and begins folded. */
export function isWide(): boolean {
  return window.innerWidth >= 900;
}
