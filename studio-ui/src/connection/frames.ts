import type { ResultHeader } from "../protocol";

export type NumberArray = Float32Array | Float64Array | Int32Array | Uint8Array;

/** A frame that does not follow the protocol: a mistake of the server's, never of the user's. */
export class FrameError extends Error {}

const LENGTH_BYTES = 4;
const ALIGNMENT = 8;

/** The header of a result with the typed arrays in their places in `body`. */
export function decodeFrame(frame: ArrayBuffer): ResultHeader {
  if (frame.byteLength < LENGTH_BYTES)
    throw new FrameError("a frame shorter than its length field");
  const length = new DataView(frame).getUint32(0, true);
  const end = LENGTH_BYTES + length;
  if (end > frame.byteLength) throw new FrameError("a frame shorter than its header");
  const text = new TextDecoder().decode(new Uint8Array(frame, LENGTH_BYTES, length));
  const header = JSON.parse(text) as ResultHeader;
  const start = Math.ceil(end / ALIGNMENT) * ALIGNMENT;
  const arrays = new Map<string, NumberArray>();
  for (const [name, place] of Object.entries(header.arrays)) {
    arrays.set(name, arrayAt(frame, start, place));
  }
  return { ...header, body: withArrays(header.body, arrays) };
}

function arrayAt(
  frame: ArrayBuffer,
  start: number,
  place: ResultHeader["arrays"][string],
): NumberArray {
  const size = place.shape.reduce((product, length) => product * length, 1);
  try {
    switch (place.dtype) {
      case "f4":
        return new Float32Array(frame, start + place.offset, size);
      case "f8":
        return new Float64Array(frame, start + place.offset, size);
      case "i4":
        return new Int32Array(frame, start + place.offset, size);
      case "u1":
        return new Uint8Array(frame, start + place.offset, size);
      default:
        throw new FrameError(`an array of unknown type ${String(place.dtype)}`);
    }
  } catch (error) {
    if (error instanceof RangeError) throw new FrameError("an array outside its frame");
    throw error;
  }
}

function withArrays(part: unknown, arrays: Map<string, NumberArray>): unknown {
  if (Array.isArray(part)) return part.map((item) => withArrays(item, arrays));
  if (part === null || typeof part !== "object") return part;
  const entries = Object.entries(part);
  const only = entries.length === 1 ? entries[0] : undefined;
  if (only && only[0] === "array" && typeof only[1] === "string") {
    const found = arrays.get(only[1]);
    if (!found) throw new FrameError(`no array named ${only[1]}`);
    return found;
  }
  return Object.fromEntries(entries.map(([key, value]) => [key, withArrays(value, arrays)]));
}
