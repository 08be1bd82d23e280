/** Changes of a scene's points. Each returns another scene; none of them fits anything. */

import type { Scene } from "../protocol";

export const MOST_CLASSES = 4;
export const MOST_POINTS = 20_000;

export function movePoint(scene: Scene, index: number, [a, b]: [number, number]): Scene {
  const x = scene.x.slice();
  if (scene.task === "classification") {
    x[index] = [a, b];
    return { ...scene, x };
  }
  const y = scene.y.slice();
  x[index] = [a];
  y[index] = b;
  return { ...scene, x, y };
}

export function addPoint(scene: Scene, [a, b]: [number, number], own: number): Scene {
  if (scene.x.length >= MOST_POINTS) return scene;
  if (scene.task === "regression") return { ...scene, x: [...scene.x, [a]], y: [...scene.y, b] };
  const named = withClass(scene, own);
  return { ...named, x: [...named.x, [a, b]], y: [...named.y, own] };
}

export function erasePoint(scene: Scene, index: number): Scene {
  const keep = (_: unknown, other: number) => other !== index;
  return { ...scene, x: scene.x.filter(keep), y: scene.y.filter(keep) };
}

export function setClass(scene: Scene, index: number, own: number): Scene {
  if (scene.task === "regression" || scene.y[index] === own) return scene;
  const named = withClass(scene, own);
  const y = named.y.slice();
  y[index] = own;
  return { ...named, y };
}

/** Classes that have no name yet get letters. */
function withClass(scene: Scene, own: number): Scene {
  if (own < scene.classes.length) return scene;
  const classes = scene.classes.slice();
  for (let number = classes.length; number <= own; number++) {
    const letter = String.fromCharCode(65 + number);
    classes.push(classes.includes(letter) ? `class ${number + 1}` : letter);
  }
  return { ...scene, classes };
}
