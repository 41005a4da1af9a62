/** A field that narrows a list down to what has a text in it. Owns the key `/` that leads there. */

import { useRef } from "preact/hooks";
import { useShortcuts } from "../keyboard/keys.js";

/** What it takes. */
export interface FilterProps {
  readonly label: string;
  /** The place, for the list of keys. */
  readonly group: string;
  readonly text: string;
  readonly onText: (text: string) => void;
}

/** The field. */
export function Filter({ label, group, text, onText }: FilterProps) {
  const field = useRef<HTMLInputElement>(null);
  useShortcuts([{ keys: "/", what: label, group, run: () => field.current?.select() }]);
  return (
    <input
      ref={field}
      class="grow"
      type="search"
      aria-label={label}
      placeholder={`${label} …`}
      autocomplete="off"
      autocapitalize="off"
      spellcheck={false}
      value={text}
      onInput={(event) => onText(event.currentTarget.value)}
    />
  );
}
