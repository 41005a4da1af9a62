/** What was found, how it was found, and the ways to change all of it. Owns the numbers above the list. */

import { useState } from "preact/hooks";
import { countMatching } from "../../api/matching.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { type Finding, useFound } from "../../state/found.js";
import { useRequest } from "../../state/page.js";
import { addressOf, go } from "../../state/route.js";
import { isReadOnly } from "../../state/settings.js";
import { counted, duration, grouped } from "../../text/words.js";
import { EntryRow } from "../../ui/entry-row.js";
import { Problem } from "../../ui/problem.js";
import { Rows } from "../../ui/rows.js";
import { Empty } from "../../ui/states.js";
import { ChangeAll, type Verb } from "./change-all.js";
import { clausesOf, type Sought } from "./draft.js";

const PAGE_ENTRIES = 100;

/** What the results take. */
export interface ResultsProps {
  readonly sought: Sought;
  /** All that was found may be another now. */
  readonly onChanged: () => void;
}

/** The results. */
export function Results({ sought, onChanged }: ResultsProps) {
  const { prefix, orderBy } = sought;
  const where = clausesOf(sought);
  const found = useFound({ prefix, where, orderBy, limit: PAGE_ENTRIES });
  const [isCounting, setCounting] = useState(false);
  const count = useRequest(isCounting ? countMatching({ prefix, where }) : undefined, String(isCounting));
  const [verb, setVerb] = useState<Verb | undefined>(undefined);
  const { entries, error, cursor, isPaused } = found;
  const openChange = (verb: Verb) => {
    if (!isReadOnly.peek()) {
      setVerb(verb);
    }
  };
  useShortcuts([
    { keys: "#", what: "Count all that match", group: "Find", run: () => setCounting(true) },
    { keys: "m", what: "Update all that match", group: "Find", run: () => openChange("update") },
    { keys: "D", what: "Delete all that match", group: "Find", run: () => openChange("delete") },
    { keys: "r", what: "Find again", group: "Find", run: onChanged },
  ]);
  const isAll = cursor === undefined;
  const known = count.data?.count ?? (isAll ? entries.length : undefined);
  return (
    <>
      <div class="found-head">
        <Numbers found={found} />
        <div class="toolbar">
          <Reading found={found} />
          {known === undefined ? (
            <button
              type="button"
              class="button small"
              disabled={isCounting}
              onClick={() => setCounting(true)}
            >
              {count.isLoading ? "Counting …" : "Count all"}
            </button>
          ) : (
            <span class="hint found-count">{counted(known, "entry", "entries")} in all</span>
          )}
          <ChangeButtons isOff={known === 0} onVerb={setVerb} />
        </div>
      </div>
      {error !== undefined && <Problem error={error} onRetry={found.readOn} />}
      {count.error !== undefined && <Problem error={count.error} onRetry={count.reload} />}
      {entries.length > 0 && (
        <Rows
          label="Entries found"
          count={entries.length}
          render={(at) => <EntryRow entry={entries[at]} />}
          onOpen={(at) => void go(addressOf("entry", { key: entries[at]?.key ?? "" }))}
          onSeen={(_, last) => {
            if (last >= entries.length - 1 && isPaused && !found.isStopped) {
              found.readOn();
            }
          }}
        />
      )}
      {entries.length === 0 && isAll && (
        <Empty title="Nothing matches">
          <p>{counted(found.examined, "entry was", "entries were")} examined.</p>
        </Empty>
      )}
      {verb !== undefined && (
        <ChangeAll
          verb={verb}
          sought={sought}
          onClose={(isChanged) => {
            setVerb(undefined);
            if (isChanged) {
              onChanged();
            }
          }}
        />
      )}
    </>
  );
}

/** Goes on with the reading, or stops it. */
function Reading({ found }: { readonly found: Finding }) {
  if (found.isReading) {
    return (
      <button type="button" class="button small" onClick={found.stop}>
        Stop
      </button>
    );
  }
  return found.isPaused ? (
    <button type="button" class="button small" onClick={found.readOn}>
      {found.entries.length === 0 ? "Load more" : "Next page"}
    </button>
  ) : null;
}

interface ChangeButtonsProps {
  readonly isOff: boolean;
  readonly onVerb: (verb: Verb) => void;
}

function ChangeButtons({ isOff, onVerb }: ChangeButtonsProps) {
  const isDisabled = isOff || isReadOnly.value;
  return (
    <>
      <button type="button" class="button small" disabled={isDisabled} onClick={() => onVerb("update")}>
        Update all …
      </button>
      <button
        type="button"
        class="button small danger-text"
        disabled={isDisabled}
        onClick={() => onVerb("delete")}
      >
        Delete all …
      </button>
    </>
  );
}

function Numbers({ found }: { readonly found: Finding }) {
  const { entries, cursor, examined, indexUsed, ms, answers } = found;
  const facts: readonly (readonly [string, string])[] = [
    [cursor === undefined ? "Found" : "Found so far", grouped(entries.length)],
    ["Examined", grouped(examined)],
    ["Index used", indexUsed.length === 0 ? "none" : indexUsed.join(", ")],
    [`Took (${counted(answers, "answer")})`, duration(ms)],
  ];
  return (
    <dl class="facts small" aria-live="polite">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <bdi>{value}</bdi>
          </dd>
        </div>
      ))}
    </dl>
  );
}
