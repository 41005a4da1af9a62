/** What can be done from everywhere: by keys, and in the palette. Owns the list and which of the windows over the page is open. */

import { signal } from "@preact/signals";
import { hasToken } from "../api/connection.js";
import { PLACES } from "../places/index.js";
import { signOut } from "../state/identity.js";
import { addressOf, go } from "../state/route.js";
import { isReadOnly, nextTheme, theme } from "../state/settings.js";

/** Something to do. */
export interface Action {
  readonly id: string;
  readonly title: string;
  /** Words that find it, too. */
  readonly words?: string;
  readonly keys?: string;
  run(): void;
}

/** A window over the page. */
export type Overlay = "palette" | "help" | "copy" | "menu";

/** Which window is open. */
export const overlay = signal<Overlay | undefined>(undefined);

/** Opens a window, or closes it where it is open. */
export function toggleOverlay(which: Overlay): void {
  overlay.value = overlay.peek() === which ? undefined : which;
}

/** All actions as things are. */
export function actions(): Action[] {
  const places = PLACES.filter((place) => !place.isOfKey).map((place) => ({
    id: `place-${place.id}`,
    title: place.title,
    words: place.what,
    keys: `g ${place.key}`,
    run: () => void go(addressOf(place.id)),
  }));
  const others: Action[] = [
    {
      id: "copy",
      title: "Copy the request of this page as …",
      words: "curl python typescript",
      keys: "c",
      run: () => toggleOverlay("copy"),
    },
    {
      id: "read-only",
      title: isReadOnly.value ? "Allow writing again" : "Only read: switch off everything that writes",
      words: "readonly safe",
      keys: "g r",
      run: () => {
        isReadOnly.value = !isReadOnly.peek();
      },
    },
    {
      id: "theme",
      title: `Theme: ${theme.value}; switch to the next`,
      words: "dark light",
      keys: "g d",
      run: nextTheme,
    },
    {
      id: "help",
      title: "Show the keys",
      words: "shortcuts help",
      keys: "?",
      run: () => toggleOverlay("help"),
    },
  ];
  return hasToken()
    ? [...places, ...others, { id: "sign-out", title: "Sign out", run: signOut }]
    : [...places, ...others];
}
