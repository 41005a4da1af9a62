/**
 * Locks and elections: who holds and who leads, since when, who waits, and how one is broken. Barriers and latches by name.
 *
 * Owns the lists, and what is open; both stand in the address.
 */

import { useCallback, useState } from "preact/hooks";
import type { ElectionPage, LockPage } from "quorate";
import { listElections, listLocks } from "../../api/locks.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { useDetails } from "../../state/details.js";
import { type Source, useRequest } from "../../state/page.js";
import { addressOf, route, setQuery } from "../../state/route.js";
import { isShownIn } from "../../text/named.js";
import { counted, duration, grouped } from "../../text/words.js";
import { useAge } from "../../ui/clock.js";
import { Filter } from "../../ui/filter.js";
import { Icon } from "../../ui/icon.js";
import { KeyName, Said } from "../../ui/key-name.js";
import { Page } from "../../ui/page.js";
import { type Column, WithHead } from "../../ui/row-head.js";
import { Rows } from "../../ui/rows.js";
import { Empty, Shown } from "../../ui/states.js";
import { Meetings } from "./meetings.js";
import { QueuePanel, readQueue } from "./panel.js";
import { type Queue, whoOf } from "./queues.js";

/** How often it looks again. */
const LOOK_EVERY_MS = 2_000;

const TABS = [
  { id: "locks", title: "Locks" },
  { id: "elections", title: "Elections" },
  { id: "meetings", title: "Barriers and latches" },
] as const;
type Tab = (typeof TABS)[number]["id"];

/** A row: what the list says of a lock or an election. */
interface Line {
  readonly name: string;
  readonly waiters: number;
}

/** What the columns of the rows are. */
const COLUMNS: Readonly<Record<Queue["kind"], readonly Column[]>> = {
  lock: [
    ["col name", "Lock"],
    ["col who", "Holder"],
    ["col extra wide-only", "Mode"],
    ["col token wide-only", "Fencing token"],
    ["col age wide-only", "Held for"],
    ["col waiting", "Waiting"],
  ],
  election: [
    ["col name", "Election"],
    ["col who", "Leader"],
    ["col extra wide-only", "Value"],
    ["col token wide-only", "Term"],
    ["col age wide-only", "Leads for"],
    ["col waiting", "Candidates"],
  ],
};

/** The place. */
export default function LocksPlace() {
  const { query } = route.value;
  const tab = TABS.find(({ id }) => id === query.get("show"))?.id ?? "locks";
  const name = query.get("name") ?? undefined;
  return (
    <Page title="Locks & elections" isTall actions={<Tabs current={tab} />}>
      {tab === "meetings" ? (
        <Meetings key={name} name={name} onName={(name) => setQuery({ show: tab, name }, "push")} />
      ) : tab === "locks" ? (
        <Locks key={tab} />
      ) : (
        <Elections key={tab} />
      )}
    </Page>
  );
}

function Tabs({ current }: { readonly current: Tab }) {
  return (
    <nav class="segments key-tabs" aria-label="Kinds">
      {TABS.map(({ id, title }) => (
        <a
          key={id}
          class="segment"
          href={addressOf("locks", { show: id === "locks" ? "" : id })}
          aria-current={id === current ? "page" : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}

function Locks() {
  const cursor = route.value.query.get("cursor") ?? undefined;
  const source = useRequest(listLocks(cursor), cursor ?? "", { everyMs: LOOK_EVERY_MS });
  return (
    <Queues
      kind="lock"
      source={source}
      linesOf={(page: LockPage) =>
        page.locks.map(({ lock, waiterCount }) => ({ name: lock, waiters: waiterCount }))
      }
    />
  );
}

function Elections() {
  const cursor = route.value.query.get("cursor") ?? undefined;
  const source = useRequest(listElections(cursor), cursor ?? "", { everyMs: LOOK_EVERY_MS });
  return (
    <Queues
      kind="election"
      source={source}
      linesOf={(page: ElectionPage) =>
        page.elections.map(({ election, candidateCount }) => ({ name: election, waiters: candidateCount }))
      }
    />
  );
}

interface QueuesProps<Page> {
  readonly kind: Queue["kind"];
  readonly source: Source<Page>;
  readonly linesOf: (page: Page) => readonly Line[];
}

function Queues<Page extends { readonly cursor?: string }>({ kind, source, linesOf }: QueuesProps<Page>) {
  const { query } = route.value;
  const cursor = query.get("cursor") ?? undefined;
  const open = query.get("name") ?? undefined;
  const text = query.get("text") ?? "";
  const show = (change: { name?: string | undefined; text?: string; cursor?: string | undefined }) =>
    setQuery({ show: kind === "lock" ? "" : "elections", name: open, text, cursor, ...change });
  useShortcuts([
    { keys: "r", what: "Refresh", group: "Locks", run: source.reload },
    { keys: "Escape", what: "Close what is open", group: "Locks", run: () => show({ name: undefined }) },
  ]);
  return (
    <>
      <div class="toolbar">
        <Filter
          label={`Name of ${kind === "lock" ? "a lock" : "an election"}`}
          group="Locks"
          text={text}
          onText={(text) => show({ text })}
        />
        <button type="button" class="button" onClick={source.reload}>
          <Icon name="reload" />
          <span>Refresh</span>
        </button>
      </div>
      <Shown what={`the ${kind}s`} source={source}>
        {(page) => (
          <>
            <p class="hint keys-count" aria-live="polite">
              {counted(linesOf(page).length, kind)}
              {(page.cursor !== undefined || cursor !== undefined) && " on this page"}
              {cursor !== undefined && (
                <button type="button" class="button quiet small" onClick={() => show({ cursor: undefined })}>
                  From the beginning
                </button>
              )}
              {page.cursor !== undefined && (
                <button
                  type="button"
                  class="button quiet small"
                  onClick={() => show({ cursor: page.cursor })}
                >
                  Next page
                </button>
              )}
            </p>
            <div class={open === undefined ? "split" : "split open"}>
              <List
                kind={kind}
                lines={linesOf(page).filter(({ name }) => isShownIn(name, text))}
                isFiltered={text !== ""}
                open={open}
                onOpen={(name) => show({ name })}
              />
              {open !== undefined && (
                <QueuePanel key={open} kind={kind} name={open} onChanged={source.reload} />
              )}
            </div>
          </>
        )}
      </Shown>
    </>
  );
}

interface ListProps {
  readonly kind: Queue["kind"];
  readonly lines: readonly Line[];
  readonly isFiltered: boolean;
  readonly open: string | undefined;
  readonly onOpen: (name: string) => void;
}

function List({ kind, lines, isFiltered, open, onOpen }: ListProps) {
  const [seen, setSeen] = useState({ first: 0, last: -1 });
  const onSeen = useCallback((first: number, last: number) => setSeen({ first, last }), []);
  const names = lines.slice(seen.first, seen.last + 1).map(({ name }) => name);
  const details = useDetails(names, (name) => readQueue(kind, name), LOOK_EVERY_MS);
  const ageMs = useAge(details);
  if (lines.length === 0) {
    return <Nothing kind={kind} isFiltered={isFiltered} />;
  }
  return (
    <WithHead columns={COLUMNS[kind]}>
      <Rows
        label={kind === "lock" ? "Locks" : "Elections"}
        count={lines.length}
        onSeen={onSeen}
        onOpen={(row) => onOpen(lines[row]?.name ?? "")}
        rowProps={(row) => ({ "data-open": lines[row]?.name === open })}
        render={(row) => {
          const line = lines[row];
          return line && <QueueRow kind={kind} line={line} queue={details.get(line.name)} ageMs={ageMs} />;
        }}
      />
    </WithHead>
  );
}

interface QueueRowProps {
  readonly kind: Queue["kind"];
  readonly line: Line;
  readonly queue: Queue | undefined;
  readonly ageMs: number;
}

function QueueRow({ kind, line, queue, ageMs }: QueueRowProps) {
  // Of several, the panel shows each.
  const first = queue?.holderCount === 1 ? queue.holders[0] : undefined;
  return (
    <>
      <span class="col name">
        <KeyName name={line.name} />
      </span>
      <span class={queue === undefined ? "col who pending" : "col who"}>
        {queue !== undefined && <Said text={whoOf(queue)} />}
      </span>
      <span class="col extra wide-only">
        {kind === "lock" ? queue?.mode : first?.value && <code>{first.value.preview(40)}</code>}
      </span>
      <span class="col token wide-only" title={kind === "lock" ? "Fencing token" : "Term"}>
        {first === undefined ? "" : `${kind === "lock" ? "fence" : "term"} ${first.token}`}
      </span>
      <span class="col age wide-only" title="For how long">
        {first === undefined ? "" : `for ${duration(first.ageMs + ageMs)}`}
      </span>
      <span class="col waiting">
        {line.waiters > 0 && <span class="badge">{waitingOf(kind, line.waiters)}</span>}
      </span>
    </>
  );
}

function waitingOf(kind: Queue["kind"], count: number): string {
  return kind === "lock" ? `${grouped(count)} wait${count === 1 ? "s" : ""}` : counted(count, "candidate");
}

function Nothing({ kind, isFiltered }: { readonly kind: Queue["kind"]; readonly isFiltered: boolean }) {
  if (isFiltered) {
    return <Empty title={`No ${kind} here has this in its name`} />;
  }
  return kind === "lock" ? (
    <Empty title="Nobody holds a lock, or waits for one">
      <p>
        A lock is there while somebody holds it or waits for it: <code>quorate lock NAME -- COMMAND</code>.
      </p>
    </Empty>
  ) : (
    <Empty title="Nobody leads, or stands in an election">
      <p>
        An election is there while somebody leads or stands: <code>quorate election run NAME -- COMMAND</code>
        .
      </p>
    </Empty>
  );
}
