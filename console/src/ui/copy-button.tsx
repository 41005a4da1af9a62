/** A button that copies a text. Owns that it says whether that worked. */

import { useState } from "preact/hooks";
import { Icon } from "./icon.js";

const SAID_MS = 1_500;

/** Copies this text. `what` says what it is. */
export function CopyButton({ text, what }: { readonly text: string; readonly what: string }) {
  const [said, setSaid] = useState<string | undefined>(undefined);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      // The browser allows it to pages over TLS or of this machine only.
      setSaid("Not allowed here: select and copy");
    }
    setTimeout(() => setSaid(undefined), SAID_MS);
  };
  return (
    <button type="button" class="button quiet small" aria-label={`Copy ${what}`} onClick={() => void copy()}>
      <Icon name="copy" />
      <span aria-live="polite">{said ?? "Copy"}</span>
    </button>
  );
}
