/**
 * Entries found by what holds of them, and all of them changed or deleted at once.
 *
 * Owns what stands in the address: the search that was made. What is typed becomes a search by the button.
 */

import { useRef, useState } from "preact/hooks";
import { keyOfShown } from "quorate";
import { OPERATORS } from "../../api/keys.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { route, setQuery } from "../../state/route.js";
import { nameIn, shownName } from "../../text/named.js";
import { Icon } from "../../ui/icon.js";
import { Page } from "../../ui/page.js";
import { Empty } from "../../ui/states.js";
import {
  type Draft,
  draftOf,
  EMPTY_LINE,
  type Line,
  queryOf,
  type Sought,
  soughtIn,
  soughtOf,
  TYPES,
  type Type,
  takesValue,
  withOperator,
} from "./draft.js";
import { Picks } from "./picks.js";
import { Results } from "./results.js";

/** The place. */
export default function FindPlace() {
  const { query } = route.value;
  const sought = soughtIn(query);
  const [turn, setTurn] = useState(0);
  const address = query.toString();
  const search = (sought: Sought) => {
    setQuery(queryOf(sought), "push");
    setTurn(turn + 1);
  };
  return (
    <Page title="Find" isTall>
      <Builder key={address} first={draftOf(sought, nameIn(query, "prefix") ?? "")} onSearch={search} />
      {sought === undefined ? (
        <Empty title="Say what you look for">
          <p>
            Entries are found by key prefix and by conditions on fields: <code>status eq new</code>,{" "}
            <code>customer.city in Ulm, Bonn</code>, <code>$version gt 5</code>. Without a comparison all keys
            with the prefix are found.
          </p>
        </Empty>
      ) : (
        <Results key={`${turn}\n${address}`} sought={sought} onChanged={() => setTurn(turn + 1)} />
      )}
    </Page>
  );
}

interface BuilderProps {
  readonly first: Draft;
  readonly onSearch: (sought: Sought) => void;
}

function Builder({ first, onSearch }: BuilderProps) {
  const [draft, setDraft] = useState(first);
  const [fault, setFault] = useState<string | undefined>(undefined);
  const field = useRef<HTMLInputElement>(null);
  const set = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const setLine = (at: number, line: Line) => set({ lines: draft.lines.with(at, line) });
  const submit = () => {
    const sought = soughtOf(draft);
    setFault(typeof sought === "string" ? sought : undefined);
    if (typeof sought !== "string") {
      onSearch(sought);
    }
  };
  const add = () => set({ lines: [...draft.lines, EMPTY_LINE] });
  useShortcuts([
    { keys: "/", what: "Search", group: "Find", run: () => field.current?.select() },
    { keys: "+", what: "One more comparison", group: "Find", run: add },
  ]);
  return (
    <search>
      <form
        class="search builder"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <label class="builder-line">
          <span>Keys that begin with</span>
          <input
            ref={field}
            class="mono grow"
            type="text"
            placeholder="all keys"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            value={draft.prefix}
            onInput={(event) => set({ prefix: event.currentTarget.value })}
          />
        </label>
        <Picks prefix={keyOfShown(draft.prefix)} onPick={(prefix) => set({ prefix: shownName(prefix) })} />
        <div class="builder-line">
          <select
            aria-label="How many of the comparisons have to hold"
            value={draft.match}
            onChange={(event) => set({ match: event.currentTarget.value === "any" ? "any" : "all" })}
          >
            <option value="all">All of these hold</option>
            <option value="any">Any of these holds</option>
          </select>
          <button type="button" class="button small quiet" onClick={add}>
            <Icon name="plus" />
            <span>Comparison</span>
          </button>
        </div>
        <ul class="comparisons" aria-label="Comparisons">
          {draft.lines.map((line, at) => (
            <Comparison
              key={at}
              number={at + 1}
              line={line}
              onLine={(line) => setLine(at, line)}
              onRemove={
                draft.lines.length === 1 && line === EMPTY_LINE
                  ? undefined
                  : () => set({ lines: without(draft.lines, at) })
              }
            />
          ))}
        </ul>
        <div class="builder-line">
          <label class="builder-line grow">
            <span>In the order of</span>
            <input
              class="mono grow"
              type="text"
              placeholder="the key; or -total, name"
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              value={draft.order}
              onInput={(event) => set({ order: event.currentTarget.value })}
            />
          </label>
          <button type="submit" class="button primary">
            <Icon name="find" />
            <span>Find</span>
          </button>
        </div>
        {fault !== undefined && (
          <p class="field-error" role="alert">
            {fault}
          </p>
        )}
      </form>
    </search>
  );
}

function without(lines: readonly Line[], at: number): readonly Line[] {
  const rest = lines.filter((_, other) => other !== at);
  return rest.length === 0 ? [EMPTY_LINE] : rest;
}

interface ComparisonProps {
  readonly number: number;
  readonly line: Line;
  readonly onLine: (line: Line) => void;
  readonly onRemove: (() => void) | undefined;
}

function Comparison({ number, line, onLine, onRemove }: ComparisonProps) {
  const { field, op, type, value } = line;
  const hasText = takesValue(op) && type !== "null" && type !== "now";
  return (
    <li class="comparison">
      <input
        class="mono comparison-field"
        type="text"
        aria-label={`Field of comparison ${number}`}
        placeholder="field"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        value={field}
        onInput={(event) => onLine({ ...line, field: event.currentTarget.value })}
      />
      <select
        class="mono"
        aria-label={`Operator of comparison ${number}`}
        value={op}
        onChange={(event) => {
          const chosen = OPERATORS.find((op) => op === event.currentTarget.value);
          onLine(withOperator(line, chosen ?? "eq"));
        }}
      >
        {OPERATORS.map((op) => (
          <option key={op} value={op}>
            {op}
          </option>
        ))}
      </select>
      {takesValue(op) && (
        <select
          aria-label={`Type of the value of comparison ${number}`}
          value={type}
          onChange={(event) => onLine({ ...line, type: event.currentTarget.value as Type })}
        >
          {TYPES.map(({ id, title }) => (
            <option key={id} value={id}>
              {title}
            </option>
          ))}
        </select>
      )}
      {hasText && (
        <input
          class="mono comparison-value"
          type="text"
          aria-label={`Value of comparison ${number}`}
          placeholder={type === "list" ? "new, paid" : "value"}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={value}
          onInput={(event) => onLine({ ...line, value: event.currentTarget.value })}
        />
      )}
      {onRemove !== undefined && (
        <button
          type="button"
          class="button quiet square comparison-remove"
          aria-label={`Remove comparison ${number}`}
          onClick={onRemove}
        >
          <Icon name="close" />
        </button>
      )}
    </li>
  );
}
