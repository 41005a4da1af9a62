/**
 * The sessions: whose they are, how long they have to live, what hangs on each, and their end.
 *
 * Owns the list, and which session is open; both stand in the address.
 */

import { useCallback, useState } from "preact/hooks";
import type { SessionPage } from "quorate";
import { listSessions, readSession } from "../../api/sessions.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { useDetails } from "../../state/details.js";
import { useRequest } from "../../state/page.js";
import { route, setQuery } from "../../state/route.js";
import { shownText } from "../../text/named.js";
import { counted, duration } from "../../text/words.js";
import { useAge } from "../../ui/clock.js";
import { Filter } from "../../ui/filter.js";
import { Icon } from "../../ui/icon.js";
import { KeyName } from "../../ui/key-name.js";
import { Page } from "../../ui/page.js";
import { type Column, WithHead } from "../../ui/row-head.js";
import { Rows } from "../../ui/rows.js";
import { Empty, Shown } from "../../ui/states.js";
import { isNamed, labelsOf, summaryOf } from "./holds.js";
import { SessionPanel } from "./panel.js";
import { TimeLeft } from "./time-left.js";

/** How often it looks again. */
const LOOK_EVERY_MS = 2_000;

/** What the columns of the rows are. */
const COLUMNS: readonly Column[] = [
  ["col id", "Session"],
  ["col name", "Owner and labels"],
  ["col holds wide-only", "What hangs on it"],
  ["col age wide-only", "Age"],
  ["col left", "Time left"],
];

/** The place. */
export default function SessionsPlace() {
  const { query } = route.value;
  const cursor = query.get("cursor") ?? undefined;
  const open = query.get("session") ?? undefined;
  const text = query.get("text") ?? "";
  const source = useRequest(listSessions(cursor), cursor ?? "", { everyMs: LOOK_EVERY_MS });
  const show = (change: { session?: string | undefined; text?: string; cursor?: string | undefined }) =>
    setQuery({ session: open, text, cursor, ...change });
  useShortcuts([
    { keys: "r", what: "Refresh", group: "Sessions", run: source.reload },
    { keys: "Escape", what: "Close the session", group: "Sessions", run: () => show({ session: undefined }) },
  ]);
  return (
    <Page
      title="Sessions"
      isTall
      actions={
        <button type="button" class="button" onClick={source.reload}>
          <Icon name="reload" />
          <span>Refresh</span>
        </button>
      }
    >
      <div class="toolbar">
        <Filter label="Id, owner or label" group="Sessions" text={text} onText={(text) => show({ text })} />
      </div>
      <Shown what="the sessions" source={source}>
        {(page) => (
          <>
            <Count page={page} isFirst={cursor === undefined} onPage={(cursor) => show({ cursor })} />
            <div class={open === undefined ? "split" : "split open"}>
              <List page={page} text={text} open={open} onOpen={(session) => show({ session })} />
              {open !== undefined && <SessionPanel key={open} id={open} onEnded={source.reload} />}
            </div>
          </>
        )}
      </Shown>
    </Page>
  );
}

interface CountProps {
  readonly page: SessionPage;
  readonly isFirst: boolean;
  readonly onPage: (cursor: string | undefined) => void;
}

function Count({ page, isFirst, onPage }: CountProps) {
  return (
    <p class="hint keys-count" aria-live="polite">
      {counted(page.sessions.length, "session")}
      {(page.cursor !== undefined || !isFirst) && " on this page"}
      {!isFirst && (
        <button type="button" class="button quiet small" onClick={() => onPage(undefined)}>
          The oldest
        </button>
      )}
      {page.cursor !== undefined && (
        <button type="button" class="button quiet small" onClick={() => onPage(page.cursor)}>
          Younger ones
        </button>
      )}
    </p>
  );
}

interface ListProps {
  readonly page: SessionPage;
  readonly text: string;
  readonly open: string | undefined;
  readonly onOpen: (id: string) => void;
}

function List({ page, text, open, onOpen }: ListProps) {
  const [seen, setSeen] = useState({ first: 0, last: -1 });
  const onSeen = useCallback((first: number, last: number) => setSeen({ first, last }), []);
  const ageMs = useAge(page);
  const sessions = page.sessions.filter((session) => isNamed(session, text));
  const ids = sessions.slice(seen.first, seen.last + 1).map(({ session }) => session);
  const details = useDetails(ids, readSession, LOOK_EVERY_MS);
  if (sessions.length === 0) {
    return (
      <Empty
        title={text === "" ? "There are no sessions" : `No session here has \`${shownText(text)}\` in it`}
      >
        {text === "" && (
          <p>
            A session is a sign of life: entries, locks and leaderships hang on it.{" "}
            <code>quorate session create</code> starts one.
          </p>
        )}
      </Empty>
    );
  }
  return (
    <WithHead columns={COLUMNS}>
      <Rows
        label="Sessions"
        count={sessions.length}
        onSeen={onSeen}
        onOpen={(row) => onOpen(sessions[row]?.session ?? "")}
        rowProps={(row) => ({ "data-open": sessions[row]?.session === open })}
        render={(row) => {
          const session = sessions[row];
          if (session === undefined) {
            return null;
          }
          const holds = details.get(session.session)?.holds;
          return (
            <>
              <code class="col id">{session.session}</code>
              <span class="col name">
                <KeyName name={session.owner === "" ? "–" : session.owner} />
                {labelsOf(session).map((label) => (
                  <span key={label} class="hint wide-only">
                    <KeyName name={label} />
                  </span>
                ))}
              </span>
              <span class={holds === undefined ? "col holds pending wide-only" : "col holds wide-only"}>
                {holds !== undefined && summaryOf(holds)}
              </span>
              <span class="col age wide-only" title="How old it is">
                {duration(session.ageMs + ageMs)} old
              </span>
              <TimeLeft ttlMs={session.ttlMs} expiresInMs={session.expiresInMs} ageMs={ageMs} />
            </>
          );
        }}
      />
    </WithHead>
  );
}
