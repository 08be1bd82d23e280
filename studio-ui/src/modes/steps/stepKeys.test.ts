import { expect, it } from "vitest";
import { playerKey } from "./stepKeys";

function pressed(key: string, tag: string, options: KeyboardEventInit = {}) {
  const element = document.createElement(tag);
  document.body.append(element);
  let found: ReturnType<typeof playerKey> = null;
  const listen = (event: KeyboardEvent) => {
    found = playerKey(event);
  };
  document.addEventListener("keydown", listen);
  element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...options }));
  document.removeEventListener("keydown", listen);
  element.remove();
  return found;
}

it("space and arrows play wherever nothing else needs them", () => {
  expect(pressed(" ", "div")).toBe("toggle");
  expect(pressed("ArrowRight", "button")).toBe("next");
  expect(pressed("End", "p")).toBe("last");
});

it("fields, stages and buttons keep their keys", () => {
  expect(pressed("ArrowRight", "input")).toBeNull();
  expect(pressed("ArrowLeft", "canvas")).toBeNull();
  expect(pressed(" ", "button")).toBeNull();
  expect(pressed("ArrowRight", "div", { ctrlKey: true })).toBeNull();
});
