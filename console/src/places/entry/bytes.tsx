/** A value that is bytes: the first of them, as hexadecimal digits and as text. Owns their form. */

import { useMemo } from "preact/hooks";
import { bytes } from "../../text/words.js";

const SHOWN_MAX = 4_096;
const IN_A_LINE = 16;

/** The bytes. */
export function Bytes({ value }: { readonly value: Uint8Array }) {
  const text = useMemo(() => dump(value.subarray(0, SHOWN_MAX)), [value]);
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
      <pre class="bytes" tabIndex={0}>
        {text}
      </pre>
      <p class="hint">
        {value.length > SHOWN_MAX && `The first ${bytes(SHOWN_MAX)} of ${bytes(value.length)}. `}
        Download them, and upload a file to replace them.
      </p>
    </>
  );
}

/** Lines of an offset, hexadecimal digits, and the characters of ASCII. */
export function dump(value: Uint8Array): string {
  const lines: string[] = [];
  for (let from = 0; from < value.length; from += IN_A_LINE) {
    const line = Array.from(value.subarray(from, from + IN_A_LINE));
    const digits = line.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = line.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${from.toString(16).padStart(6, "0")}  ${digits.padEnd(IN_A_LINE * 3 - 1)}  ${text}`);
  }
  return lines.join("\n");
}
