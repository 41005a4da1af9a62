/** Base64, which bytes have in JSON. Owns its syntax; works in every runtime. */

/** Bytes that go through `String.fromCharCode` at a time: more arguments than that overflow the stack. */
const PIECE = 0x8000;

/** These bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += PIECE) {
    text += String.fromCharCode(...bytes.subarray(at, at + PIECE));
  }
  return btoa(text);
}

/** The bytes of this base64. */
export function fromBase64(text: string): Uint8Array {
  const plain = atob(text);
  const bytes = new Uint8Array(plain.length);
  for (let at = 0; at < plain.length; at += 1) {
    bytes[at] = plain.charCodeAt(at);
  }
  return bytes;
}
