/**
 * The keys: as a tree, or as the list of those of which something holds.
 *
 * Owns what stands in the address: the prefix, the delimiter, the conditions.
 */

import { useRef, useState } from "preact/hooks";
import { keyOfShown } from "quorate";
import { countKeys, parseCondition, shownWords } from "../../api/keys.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { identity, readablePrefixes } from "../../state/identity.js";
import { useRequest } from "../../state/page.js";
import { addressOf, go, route, setQuery } from "../../state/route.js";
import { isReadOnly } from "../../state/settings.js";
import { behindPrefix, nameIn, shownName } from "../../text/named.js";
import { counted } from "../../text/words.js";
import { Icon } from "../../ui/icon.js";
import { KeyName, Said } from "../../ui/key-name.js";
import { Page } from "../../ui/page.js";
import { Found } from "./found.js";
import { NewEntry } from "./new-entry.js";
import { TreeView } from "./tree-view.js";

const DELIMITER = "/";

/** The place. */
export default function KeysPlace() {
  const { query } = route.value;
  const prefix = nameIn(query, "prefix") ?? "";
  const where = query.getAll("where");
  const delimiter = query.get("delimiter") ?? DELIMITER;
  const [isCreating, setCreating] = useState(false);
  const conditions = where.map(parseCondition).filter((condition) => typeof condition !== "string");
  return (
    <Page
      title="Keys"
      isTall
      actions={
        <button type="button" class="button" disabled={isReadOnly.value} onClick={() => setCreating(true)}>
          <Icon name="plus" />
          <span>New entry</span>
        </button>
      }
    >
      <SearchBar key={`${prefix}\n${where.join("\n")}`} prefix={prefix} where={where} delimiter={delimiter} />
      <Roots prefix={prefix} />
      {conditions.length === 0 ? (
        <>
          <Count key={prefix} prefix={prefix} />
          <TreeView key={`${prefix}\n${delimiter}`} prefix={prefix} delimiter={delimiter} />
        </>
      ) : (
        <Found key={`${prefix}\n${where.join("\n")}`} prefix={prefix} where={conditions} />
      )}
      {isCreating && <NewEntry prefix={prefix} onClose={() => setCreating(false)} />}
    </Page>
  );
}

interface SearchBarProps {
  readonly prefix: string;
  readonly where: readonly string[];
  readonly delimiter: string;
}

function SearchBar({ prefix, where, delimiter }: SearchBarProps) {
  const field = useRef<HTMLInputElement>(null);
  const [typedPrefix, setPrefix] = useState(shownName(prefix));
  const [typedCondition, setCondition] = useState("");
  const [fault, setFault] = useState<string | undefined>(undefined);
  useShortcuts([
    { keys: "/", what: "Search", group: "Keys", run: () => field.current?.select() },
    {
      keys: "u",
      what: "Up: one part less in the prefix",
      group: "Keys",
      run: () => show(above(prefix, delimiter), where),
    },
  ]);
  const show = (prefix: string, where: readonly string[]) =>
    setQuery({ prefix, where, delimiter: delimiter === DELIMITER ? "" : delimiter }, "push");
  const submit = () => {
    const parsed = typedCondition.trim() === "" ? undefined : parseCondition(typedCondition);
    setFault(typeof parsed === "string" ? parsed : undefined);
    if (typeof parsed !== "string") {
      show(keyOfShown(typedPrefix), parsed === undefined ? where : [...where, typedCondition.trim()]);
    }
  };
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
          <input
            ref={field}
            class="mono grow"
            type="text"
            aria-label="Keys that begin with"
            placeholder="Keys that begin with …"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            value={typedPrefix}
            onInput={(event) => setPrefix(event.currentTarget.value)}
          />
          <input
            class="mono grow"
            type="text"
            aria-label="Of which this holds: field, operator, value"
            aria-invalid={fault !== undefined}
            placeholder="Filter: status eq pending"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            value={typedCondition}
            onInput={(event) => setCondition(event.currentTarget.value)}
          />
          <button type="submit" class="button primary">
            <Icon name="find" />
            <span>Search</span>
          </button>
        </div>
        {fault !== undefined && (
          <p class="field-error" role="alert">
            {fault}
          </p>
        )}
        {where.length > 0 && (
          <ul class="chips" aria-label="Conditions">
            {where.map((condition) => (
              <Chip
                key={condition}
                text={condition}
                onRemove={() =>
                  show(
                    prefix,
                    where.filter((other) => other !== condition),
                  )
                }
              />
            ))}
          </ul>
        )}
      </form>
    </search>
  );
}

function Chip({ text, onRemove }: { readonly text: string; readonly onRemove: () => void }) {
  const fault = parseCondition(text);
  const shown = shownWords(text);
  return (
    <li class={typeof fault === "string" ? "chip bad" : "chip"}>
      <Said text={shown} />
      <button
        type="button"
        class="button quiet chip-remove"
        aria-label={`Remove the condition ${shown}`}
        onClick={onRemove}
      >
        <Icon name="close" />
      </button>
      {typeof fault === "string" && <span class="field-error">{fault}</span>}
    </li>
  );
}

/** The prefix with its last part taken away. */
function above(prefix: string, delimiter: string): string {
  const at = prefix.lastIndexOf(delimiter, prefix.length - delimiter.length - 1);
  return at < 0 ? "" : prefix.slice(0, at + delimiter.length);
}

/** Where a token may read only below some prefixes: those, to begin with. */
function Roots({ prefix }: { readonly prefix: string }) {
  const roots = readablePrefixes();
  const isAllowed = roots.some((root) => behindPrefix(prefix, root) !== undefined);
  const self = identity.value;
  if (self.kind !== "known" || isAllowed || self.self.user === undefined) {
    return null;
  }
  return (
    <section class="advice note">
      <Icon name="lock" />
      <div>
        <p class="advice-title">
          {roots.length === 0
            ? `The user ${shownName(self.self.user)} may read no keys`
            : `The user ${shownName(self.self.user)} may read keys below these prefixes`}
        </p>
        <div class="toolbar">
          {roots.map((root) => (
            <button
              key={root}
              type="button"
              class="button small"
              onClick={() => void go(addressOf("keys", { prefix: root }))}
            >
              <KeyName name={root} />
            </button>
          ))}
        </div>
      </div>
    </section>
  );
}

/** How many there are. Why that is not known, the tree says, which is refused for the same reason. */
function Count({ prefix }: { readonly prefix: string }) {
  const { data } = useRequest(countKeys(prefix), prefix);
  return (
    <p class="hint keys-count" aria-live="polite">
      {data === undefined ? "\u00a0" : counted(data.count, "entry", "entries")}
      {data !== undefined && prefix !== "" && (
        <>
          {" that begin with "}
          <KeyName name={prefix} />
        </>
      )}
    </p>
  );
}
