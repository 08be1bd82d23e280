// @vitest-environment node
import { describe, expect, it } from "vitest";
import { frameOf } from "./fakeFrame";
import { decodeFrame, FrameError } from "./frames";

function header(body: unknown, arrays: object = {}) {
  return { kind: "result", id: 3, channel: "picture", body, arrays };
}

describe("decodeFrame", () => {
  it("puts typed arrays of all four kinds in their places", () => {
    const bytes = new ArrayBuffer(40);
    new Float32Array(bytes, 0, 2).set([0.5, -1]);
    new Float64Array(bytes, 8, 1).set([Math.PI]);
    new Int32Array(bytes, 16, 2).set([7, -7]);
    new Uint8Array(bytes, 24, 3).set([0, 1, 255]);
    const arrays = {
      a: { dtype: "f4", shape: [2], offset: 0 },
      b: { dtype: "f8", shape: [1], offset: 8 },
      c: { dtype: "i4", shape: [2], offset: 16 },
      d: { dtype: "u1", shape: [1, 3], offset: 24 },
    };
    const body = {
      grid: { values: { array: "a" } },
      list: [{ array: "b" }, { array: "c" }],
      d: { array: "d" },
    };
    const decoded = decodeFrame(frameOf(header(body, arrays), bytes)).body as never as {
      grid: { values: Float32Array };
      list: [Float64Array, Int32Array];
      d: Uint8Array;
    };
    expect(decoded.grid.values).toEqual(new Float32Array([0.5, -1]));
    expect(decoded.list[0][0]).toBe(Math.PI);
    expect(decoded.list[1]).toEqual(new Int32Array([7, -7]));
    expect(decoded.d).toEqual(new Uint8Array([0, 1, 255]));
  });

  it("counts bytes of the header, not letters, whatever their number", () => {
    for (const note of ["", "é", "éé", "ééé", "→", "x".repeat(5), "x".repeat(6), "x".repeat(7)]) {
      const bytes = new Float64Array([1, 2]).buffer;
      const arrays = { a: { dtype: "f8", shape: [2], offset: 0 } };
      const decoded = decodeFrame(frameOf(header({ note, a: { array: "a" } }, arrays), bytes));
      expect(decoded.body).toEqual({ note, a: new Float64Array([1, 2]) });
    }
  });

  it("leaves an object with further keys beside `array` alone", () => {
    const decoded = decodeFrame(frameOf(header({ array: "a", other: 1 })));
    expect(decoded.body).toEqual({ array: "a", other: 1 });
  });

  it("refuses frames that are cut short or name what is not there", () => {
    const whole = frameOf(header({ a: 1 }));
    expect(() => decodeFrame(whole.slice(0, 2))).toThrow(FrameError);
    expect(() => decodeFrame(whole.slice(0, 20))).toThrow(FrameError);
    expect(() => decodeFrame(frameOf(header({ array: "gone" })))).toThrow(/no array named gone/);
    const outside = { a: { dtype: "f8", shape: [100], offset: 0 } };
    expect(() => decodeFrame(frameOf(header({ array: "a" }, outside)))).toThrow(/outside/);
    const strange = { a: { dtype: "c8", shape: [1], offset: 0 } };
    expect(() => decodeFrame(frameOf(header({ array: "a" }, strange)))).toThrow(/unknown type/);
  });
});
