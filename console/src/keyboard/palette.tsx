/**
 * The palette: everything that can be done, by typing a few letters of it. A key that is typed can be opened, and so can those that begin so.
 * Owns the search.
 */

import { useState } from "preact/hooks";
import { keyOfShown } from "quorate";
import { addressOf, go } from "../state/route.js";
import { shownName } from "../text/named.js";
import { Dialog } from "../ui/dialog.js";
import { type Action, actions, overlay } from "./actions.js";
import { shownKeys } from "./keys.js";
import { useKnownKeys } from "./known-keys.js";

/** Whether all letters of `typed` are in the text, in order. */
export function matches(typed: string, text: string): boolean {
  let at = 0;
  const within = text.toLowerCase();
  return Array.from(typed.toLowerCase().replace(/\s/g, "")).every((letter) => {
    at = within.indexOf(letter, at) + 1;
    return at > 0;
  });
}

/** What can be done with the key that is typed, and with those that begin so. */
function ofKey(typed: string, known: readonly string[]): Action[] {
  const key = keyOfShown(typed.trim());
  const shown = shownName(key);
  const others = known.filter((other) => other !== key);
  return key === ""
    ? []
    : [
        openOf(key),
        ...others.map(openOf),
        {
          id: "below",
          title: `Keys that begin with ${shown}`,
          run: () => void go(addressOf("keys", { prefix: key })),
        },
        { id: "past", title: `History of ${shown}`, run: () => void go(addressOf("history", { key })) },
      ];
}

function openOf(key: string): Action {
  return {
    id: `entry ${key}`,
    title: `Open the entry ${shownName(key)}`,
    run: () => void go(addressOf("entry", { key })),
  };
}

/** The palette. */
export function Palette() {
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const found = actions().filter(({ title, words }) => matches(typed, `${title} ${words ?? ""}`));
  const all = [...found, ...ofKey(typed, useKnownKeys(typed))];
  const at = Math.min(chosen, all.length - 1);
  const close = () => {
    overlay.value = undefined;
  };
  const run = (action: Action | undefined) => {
    close();
    action?.run();
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setChosen((at + step + all.length) % Math.max(1, all.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(all[at]);
    }
  };
  return (
    <Dialog title="Do something" at="top" isBare onClose={close}>
      <input
        class="palette-input"
        type="text"
        role="combobox"
        aria-label="What to do"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={all.length > 0 ? `palette-${at}` : undefined}
        placeholder="Go somewhere, do something, open a key …"
        autocomplete="off"
        spellcheck={false}
        value={typed}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={onKey}
      />
      <div class="palette-list" id="palette-list" role="listbox" aria-label="What can be done">
        {all.map((action, row) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the field above has the focus
          <div
            key={action.id}
            id={`palette-${row}`}
            role="option"
            aria-selected={row === at}
            class={row === at ? "palette-item active" : "palette-item"}
            onClick={() => run(action)}
          >
            <bdi>{action.title}</bdi>
            {action.keys !== undefined && <Keys keys={action.keys} />}
          </div>
        ))}
      </div>
    </Dialog>
  );
}

/** Keys as they are pressed. */
export function Keys({ keys }: { readonly keys: string }) {
  return (
    <span class="keys">
      {shownKeys(keys).map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </span>
  );
}
