import { describe, expect, it } from "vitest";
import type { Step } from "../../protocol";
import { type Loaded, StepLoader } from "./stepLoader";

function setUp() {
  const asked: { number: number; answer: () => void; refuse: (error: Error) => void }[] = [];
  const told: Loaded[] = [];
  const loader = new StepLoader(
    (number) =>
      new Promise<Step>((resolve, reject) => {
        asked.push({ number, answer: () => resolve({ number } as Step), refuse: reject });
      }),
    (loaded) => told.push(loaded),
  );
  const settle = () => new Promise((resolve) => setTimeout(resolve, 0));
  return { asked, told, loader, settle, numbers: () => asked.map((own) => own.number) };
}

describe("the loader of steps", () => {
  it("asks for the wished step, then for the one after it", async () => {
    const { asked, told, loader, settle, numbers } = setUp();
    loader.want(3, 10);
    asked[0]!.answer();
    await settle();
    expect(told.at(-1)).toMatchObject({ step: { number: 3 }, isWaiting: false });
    expect(numbers()).toEqual([3, 4]);
  });

  it("answers a known step at once", async () => {
    const { asked, told, loader, settle } = setUp();
    loader.want(0, 10);
    asked[0]!.answer();
    await settle();
    asked[1]!.answer();
    await settle();
    loader.want(1, 10);
    expect(told.at(-1)).toMatchObject({ step: { number: 1 }, isWaiting: false });
  });

  it("skips the wishes between the running one and the newest", async () => {
    const { asked, loader, settle, numbers } = setUp();
    for (const number of [1, 2, 3, 4, 5]) loader.want(number, 10);
    asked[0]!.answer();
    await settle();
    expect(numbers()).toEqual([1, 5]);
  });

  it("does not ask for a step after the last", async () => {
    const { asked, loader, settle, numbers } = setUp();
    loader.want(10, 10);
    asked[0]!.answer();
    await settle();
    expect(numbers()).toEqual([10]);
  });

  it("tells an error, keeps the last picture and does not ask again by itself", async () => {
    const { asked, told, loader, settle, numbers } = setUp();
    loader.want(1, 10);
    asked[0]!.answer();
    await settle();
    asked[1]!.answer();
    await settle();
    loader.want(7, 10);
    asked[2]!.refuse(new Error("no"));
    await settle();
    expect(told.at(-1)).toMatchObject({ step: { number: 1 }, isWaiting: false });
    expect(told.at(-1)?.error?.message).toBe("no");
    expect(numbers()).toEqual([1, 2, 7]);
  });
});
