/** The form that says what is watched. Owns what is typed before it is applied. */

import { useRef, useState } from "preact/hooks";
import { keyOfShown } from "quorate";
import { shownWords } from "../../api/keys.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { shownName } from "../../text/named.js";
import { Icon } from "../../ui/icon.js";
import { Said } from "../../ui/key-name.js";
import { type Wish, watchedOf } from "./address.js";

/** What the form takes. */
export interface WatchFormProps {
  readonly wish: Wish;
  readonly onWish: (wish: Wish) => void;
}

/** The form. */
export function WatchForm({ wish, onWish }: WatchFormProps) {
  const field = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState({ ...wish, text: shownName(wish.text) });
  const [condition, setCondition] = useState("");
  const [fault, setFault] = useState<string | undefined>(undefined);
  useShortcuts([
    { keys: "/", what: "Watch something else", group: "Live watch", run: () => field.current?.select() },
  ]);
  const submit = () => {
    const more = condition.trim();
    const next = {
      ...typed,
      text: keyOfShown(typed.text),
      where: more === "" ? typed.where : [...typed.where, more],
    };
    const watched = watchedOf(next);
    const isNameless = next.isKey && next.text === "";
    const wrong = typeof watched === "string" ? watched : isNameless ? "a key has a name" : undefined;
    setFault(wrong);
    if (wrong === undefined) {
      onWish(next);
    }
  };
  const text = (name: "text" | "part" | "from", label: string, placeholder: string, look: string) => (
    <input
      {...(name === "text" && { ref: field })}
      class={`mono ${look}`}
      type="text"
      aria-label={label}
      title={label}
      placeholder={placeholder}
      autocomplete="off"
      autocapitalize="off"
      spellcheck={false}
      value={typed[name]}
      onInput={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })}
    />
  );
  return (
    <search>
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <div class="toolbar">
          <select
            aria-label="Prefix or key"
            value={typed.isKey ? "key" : "prefix"}
            onChange={(event) => setTyped({ ...typed, isKey: event.currentTarget.value === "key" })}
          >
            <option value="prefix">Prefix</option>
            <option value="key">Key</option>
          </select>
          {text(
            "text",
            typed.isKey ? "Key" : "Keys that begin with",
            typed.isKey ? "Key" : "Keys that begin with …",
            "grow",
          )}
          <select
            aria-label="Kinds of changes"
            value={typed.events}
            onChange={(event) => setTyped({ ...typed, events: event.currentTarget.value as Wish["events"] })}
          >
            <option value="">All changes</option>
            <option value="put">Writes</option>
            <option value="delete">Deletions</option>
          </select>
        </div>
        <div class="toolbar">
          <input
            class="mono grow"
            type="text"
            aria-label="Of which this holds: field, operator, value"
            placeholder="Of which holds: status eq pending"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            value={condition}
            onInput={(event) => setCondition(event.currentTarget.value)}
          />
          {text("part", "Only a part of the keys: 0/4 is the first of four", "Part: 0/4", "short")}
          {text("from", "From this revision on", "From revision", "short")}
          <button type="submit" class="button primary">
            <Icon name="watch" />
            <span>Watch</span>
          </button>
        </div>
        {fault !== undefined && (
          <p class="field-error" role="alert">
            {fault}
          </p>
        )}
        {wish.where.length > 0 && (
          <ul class="chips" aria-label="Conditions">
            {wish.where.map((text) => (
              <li key={text} class="chip">
                <Said text={shownWords(text)} />
                <button
                  type="button"
                  class="button quiet chip-remove"
                  aria-label={`Remove the condition ${shownWords(text)}`}
                  onClick={() => onWish({ ...wish, where: wish.where.filter((other) => other !== text) })}
                >
                  <Icon name="close" />
                </button>
              </li>
            ))}
          </ul>
        )}
      </form>
    </search>
  );
}
