/**
 * What the keys do.
 *
 * Owns the one listener, sequences (`g k`), and the list that `?` shows. Keys without a modifier do nothing while somebody types.
 */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

/** A key or a sequence, and what it does. */
export interface Shortcut {
  /** `j`, `g k`, `mod+k` (Ctrl, or Cmd on a Mac), `?`. */
  readonly keys: string;
  /** What it does, for people. */
  readonly what: string;
  /** Where it works: `Everywhere`, or the name of a place. */
  readonly group: string;
  run(): void;
}

/** Between two keys of a sequence. */
const SEQUENCE_MS = 1_200;

/** All that work at the moment; the last of several with the same keys counts. */
export const shortcuts = signal<readonly Shortcut[]>([]);

/** Lets these keys work for as long as the component is there. */
export function useShortcuts(list: readonly Shortcut[]): void {
  useEffect(() => {
    shortcuts.value = [...shortcuts.peek(), ...list];
    return () => {
      shortcuts.value = shortcuts.peek().filter((shortcut) => !list.includes(shortcut));
    };
  });
}

/** Whether what has the focus takes typed text. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
    !(target instanceof HTMLInputElement && /^(checkbox|radio|button)$/.test(target.type))
  );
}

/** The name of a pressed key, as shortcuts have it. */
export function nameOf(event: KeyboardEvent): string {
  const isMod = event.ctrlKey || event.metaKey;
  return isMod ? `mod+${event.key.toLowerCase()}` : event.key;
}

/** The keys as they are shown, one after the other: `Ctrl K`, or `g` and `k`. */
export function shownKeys(keys: string): string[] {
  const mod = isMac() ? "⌘" : "Ctrl";
  return keys
    .split(" ")
    .map((key) => (key.startsWith("mod+") ? `${mod} ${key.slice(4).toUpperCase()}` : key));
}

function isMac(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.userAgent);
}

let before = "";
let beforeAt = 0;

function onKey(event: KeyboardEvent): void {
  const name = nameOf(event);
  if (
    event.defaultPrevented ||
    event.isComposing ||
    event.altKey ||
    (isTyping(event.target) && !name.startsWith("mod+"))
  ) {
    return;
  }
  // A dialog that is open has the keyboard for itself.
  if (document.querySelector("dialog[open]") !== null && name !== "mod+k") {
    return;
  }
  const isSequence = event.timeStamp - beforeAt < SEQUENCE_MS && before !== "";
  const wanted = isSequence ? `${before} ${name}` : name;
  const all = shortcuts.peek();
  const found =
    all.findLast((shortcut) => shortcut.keys === wanted) ?? all.findLast(({ keys }) => keys === name);
  if (found !== undefined) {
    before = "";
    event.preventDefault();
    found.run();
    return;
  }
  const begins = all.some((shortcut) => shortcut.keys.startsWith(`${name} `));
  before = begins ? name : "";
  beforeAt = event.timeStamp;
}

addEventListener("keydown", onKey);
