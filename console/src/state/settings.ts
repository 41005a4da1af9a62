/** What one person prefers: the theme, and whether anything may be written. Owns where each is kept. */

import { effect, signal } from "@preact/signals";

/** The theme; `system` is that of the machine. */
export type Theme = "system" | "light" | "dark";

const THEME_ITEM = "quorate.theme";
const READ_ONLY_ITEM = "quorate.readOnly";
const THEMES: readonly Theme[] = ["system", "light", "dark"];

/** The theme. Kept for this browser. */
export const theme = signal<Theme>(
  THEMES.find((theme) => theme === localStorage.getItem(THEME_ITEM)) ?? "system",
);

/** Whether everything that writes is off. Kept for this tab. */
export const isReadOnly = signal(sessionStorage.getItem(READ_ONLY_ITEM) === "true");

/** The next theme in turn. */
export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.peek()) + 1) % THEMES.length] ?? "system";
}

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  localStorage.setItem(THEME_ITEM, theme.value);
});

effect(() => {
  sessionStorage.setItem(READ_ONLY_ITEM, String(isReadOnly.value));
});
