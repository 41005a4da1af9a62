/** The heading of a page about one key: the key, each part of it a way to what is beside it, and the pages that there are of it. */

import { addressOf } from "../state/route.js";
import { KeyName } from "./key-name.js";

const DELIMITER = "/";

/** The key, its parts as links. */
export function KeyHeading({ name }: { readonly name: string }) {
  const parts = name.split(DELIMITER);
  const last = parts.pop() ?? "";
  return (
    <span class="key-heading">
      {parts.map((part, at) => {
        const prefix = parts.slice(0, at + 1).join(DELIMITER) + DELIMITER;
        return (
          <a key={prefix} href={addressOf("keys", { prefix })} title="Keys that begin so">
            <KeyName name={part + DELIMITER} />
          </a>
        );
      })}
      <KeyName name={last} />
    </span>
  );
}

/** The pages that there are of a key. */
export function KeyTabs({ name, current }: { readonly name: string; readonly current: "entry" | "history" }) {
  return (
    <nav class="segments key-tabs" aria-label="Pages of this key">
      {(["entry", "history"] as const).map((place) => (
        <a
          key={place}
          class="segment"
          href={addressOf(place, { key: name })}
          aria-current={place === current ? "page" : undefined}
        >
          {place === "entry" ? "Entry" : "History"}
        </a>
      ))}
    </nav>
  );
}

/** What stands where the address names no key. */
export function NoKeyNamed() {
  return (
    <p class="hint">
      The address names no key. <a href={addressOf("keys")}>Choose one among the keys</a>, or press{" "}
      <kbd>Ctrl K</kbd> and type it.
    </p>
  );
}
