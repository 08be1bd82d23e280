import { describe, expect, it } from "vitest";
import type { Impurity } from "../protocol";
import { AskError } from "./answers";
import { isEqual } from "./isEqual";
import type { ask } from "./studio";
import { type Answer, Follower } from "./useAnswer";

function follower() {
  const asked: number[] = [];
  const open: { resolve: (value: never) => void; reject: (error: Error) => void }[] = [];
  const answers: Answer<Impurity>[] = [];
  const fake = ((request: { share: number }) => {
    asked.push(request.share);
    return new Promise((resolve, reject) => open.push({ resolve, reject }));
  }) as never as typeof ask;
  const own = new Follower<"impurity">("c", (answer) => answers.push(answer), fake);
  const want = (share: number) => own.want({ kind: "impurity", share });
  const finish = async (value: string | Error) => {
    const next = open.shift()!;
    if (value instanceof Error) next.reject(value);
    else next.resolve(value as never);
    await new Promise((resolve) => setTimeout(resolve));
  };
  return { own, asked, answers, want, finish, last: () => answers[answers.length - 1]! };
}

describe("Follower", () => {
  it("has one request in flight, and the newest wish wins", async () => {
    const { asked, want, finish, last } = follower();
    for (const share of [1, 2, 3, 4]) want(share);
    expect(asked).toEqual([1]);
    await finish("first");
    expect(asked).toEqual([1, 4]);
    expect(last()).toMatchObject({ value: "first", isWaiting: true });
    await finish("fourth");
    expect(asked).toEqual([1, 4]);
    expect(last()).toMatchObject({ value: "fourth", isWaiting: false, error: null });
  });

  it("shows no old answer beside an error, and goes on", async () => {
    const { want, finish, last } = follower();
    want(1);
    await finish("good");
    want(2);
    await finish(new AskError("one class only"));
    expect(last()).toMatchObject({ value: null, isWaiting: false });
    expect(last().error?.message).toBe("one class only");
    want(3);
    await finish("better");
    expect(last()).toMatchObject({ value: "better", error: null });
  });

  it("forgets what was asked before it was cleared", async () => {
    const { own, want, finish, last } = follower();
    want(1);
    own.clear();
    await finish("late");
    expect(last()).toEqual({ value: null, error: null, progress: null, isWaiting: false });
    want(2);
    await finish("wanted");
    expect(last()).toMatchObject({ value: "wanted", isWaiting: false });
  });

  it("tells nothing after it was dropped", async () => {
    const { own, want, finish, answers } = follower();
    want(1);
    const count = answers.length;
    own.drop();
    await finish("late");
    expect(answers).toHaveLength(count);
  });
});

describe("isEqual", () => {
  it("compares by content", () => {
    const scene = { x: [[1, 2]], y: [0], p: { C: 1, none: null } };
    expect(isEqual(scene, structuredClone(scene))).toBe(true);
    expect(isEqual(scene, { ...scene, y: [1] })).toBe(false);
    expect(isEqual({ a: undefined }, { b: undefined })).toBe(false);
    expect(isEqual([1], { 0: 1 })).toBe(false);
    expect(isEqual(null, {})).toBe(false);
    expect(isEqual(Number.NaN, Number.NaN)).toBe(true);
  });
});
