/** A frame as the protocol describes it. */
export function frameOf(header: object, arrays: ArrayBuffer = new ArrayBuffer(0)): ArrayBuffer {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const start = Math.ceil((4 + text.length) / 8) * 8;
  const frame = new Uint8Array(start + arrays.byteLength);
  new DataView(frame.buffer).setUint32(0, text.length, true);
  frame.set(text, 4);
  frame.set(new Uint8Array(arrays), start);
  return frame.buffer;
}
