/** Short notices of what was done. Owns how long each is shown. What went wrong is shown where it was asked for, not here. */

import { signal } from "@preact/signals";

/** A notice. */
export interface Notice {
  readonly id: number;
  readonly text: string;
}

const SHOWN_MS = 5_000;

/** Those that are shown, the oldest first. */
export const notices = signal<readonly Notice[]>([]);

let count = 0;

/** Shows a notice for a while. */
export function notify(text: string): void {
  count += 1;
  const notice = { id: count, text };
  notices.value = [...notices.peek(), notice];
  setTimeout(() => dismiss(notice.id), SHOWN_MS);
}

/** Takes a notice away. */
export function dismiss(id: number): void {
  notices.value = notices.peek().filter((notice) => notice.id !== id);
}
