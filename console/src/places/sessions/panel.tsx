/** One session: what is known of it, what hangs on it, and its end. Owns the links to what hangs on it. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { QuorateError, SessionInfo } from "quorate";
import { asError } from "../../api/errors.js";
import { readSession } from "../../api/sessions.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { useRequest } from "../../state/page.js";
import { addressOf } from "../../state/route.js";
import { isReadOnly } from "../../state/settings.js";
import { counted, duration } from "../../text/words.js";
import { useAge } from "../../ui/clock.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Empty, Loading } from "../../ui/states.js";
import { Time } from "../../ui/time.js";
import { endOnceConfirmed } from "./end.js";
import { labelsOf, unnamed } from "./holds.js";
import { TimeLeft } from "./time-left.js";

const LOOK_EVERY_MS = 2_000;

/** What the panel takes. */
export interface SessionPanelProps {
  readonly id: string;
  readonly onEnded: () => void;
}

/** The panel. */
export function SessionPanel({ id, onEnded }: SessionPanelProps) {
  const source = useRequest(readSession(id), id, { everyMs: LOOK_EVERY_MS });
  const [error, setError] = useState<QuorateError | undefined>(undefined);
  const { data: session, isLoading, reload } = source;
  const end = async () => {
    setError(undefined);
    try {
      await endOnceConfirmed(id);
    } catch (error) {
      setError(asError(error));
    }
    reload();
    onEnded();
  };
  const canEnd = session !== undefined && !isReadOnly.value;
  useShortcuts([
    { keys: "x", what: "End the session that is open", group: "Sessions", run: () => canEnd && void end() },
  ]);
  return (
    <section class="panel" aria-label={`Session ${id}`}>
      <header class="panel-head">
        <h2>Session {id}</h2>
        <button type="button" class="button small danger-text" disabled={!canEnd} onClick={() => void end()}>
          End session
        </button>
      </header>
      {error !== undefined && <Problem error={error} />}
      {source.error !== undefined && <Problem error={source.error} onRetry={reload} />}
      {session !== undefined ? (
        <Facts session={session} />
      ) : isLoading ? (
        <Loading what="the session" />
      ) : (
        source.error === undefined && (
          <Empty title="It has ended">
            <p>What hung on it is gone: entries, locks, leaderships, claims of tasks.</p>
          </Empty>
        )
      )}
    </section>
  );
}

function Facts({ session }: { readonly session: SessionInfo }) {
  const ageMs = useAge(session);
  const labels = labelsOf(session);
  return (
    <>
      <dl class="list">
        <Fact name="Owner">
          <KeyName name={session.owner === "" ? "–" : session.owner} />
        </Fact>
        <Fact name="Time left">
          <TimeLeft ttlMs={session.ttlMs} expiresInMs={session.expiresInMs} ageMs={ageMs} />
        </Fact>
        <Fact name="Lives for">{duration(session.ttlMs)} after each renewal</Fact>
        <Fact name="Created">
          <Time at={session.created} />
        </Fact>
        {labels.length > 0 && (
          <Fact name="Labels">
            {labels.map((label) => (
              <div key={label}>
                <KeyName name={label} />
              </div>
            ))}
          </Fact>
        )}
      </dl>
      <HangingOn session={session} />
    </>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function HangingOn({ session: { holds } }: { readonly session: SessionInfo }) {
  if (holds === undefined || holds.count === 0) {
    return <p class="hint">Nothing hangs on it.</p>;
  }
  const place = (show: string, words: readonly string[]) => (hold: (typeof holds.locks)[number]) => (
    <>
      <a href={addressOf("locks", { show, name: hold.name })}>
        <KeyName name={hold.name} />
      </a>{" "}
      <span class={hold.state === "held" ? "badge good" : "badge quiet"}>
        {hold.state === "held" ? words[0] : words[1]}
      </span>
      {hold.token !== undefined && (
        <span class="hint">
          {words[2]} {hold.token}
        </span>
      )}
    </>
  );
  const more = unnamed(holds);
  return (
    <>
      <Group title="Locks" items={holds.locks.map(place("", ["held", "waits", "fence"]))} />
      <Group title="Elections" items={holds.elections.map(place("elections", ["leads", "stands", "term"]))} />
      <Group
        title="Entries"
        items={holds.keys.map((key) => (
          <a key={key} href={addressOf("entry", { key })}>
            <KeyName name={key} />
          </a>
        ))}
      />
      <Group title="Tasks" items={(holds.tasks ?? []).map((task) => <KeyName key={task} name={task} />)} />
      <Group
        title="Barriers"
        items={holds.barriers.map((name) => (
          <a key={name} href={addressOf("locks", { show: "meetings", name })}>
            <KeyName name={name} />
          </a>
        ))}
      />
      {more > 0 && <p class="hint">And {counted(more, "thing")} more, which the node does not name.</p>}
    </>
  );
}

/** So many of a kind are shown at first. */
const SHOWN_MAX = 20;

function Group({ title, items }: { readonly title: string; readonly items: readonly ComponentChildren[] }) {
  const [isWhole, setWhole] = useState(false);
  if (items.length === 0) {
    return null;
  }
  return (
    <div class="group">
      <h3>
        {title} <span class="hint">{items.length}</span>
      </h3>
      <ul class="plain">
        {items.slice(0, isWhole ? undefined : SHOWN_MAX).map((item, at) => (
          <li key={at}>{item}</li>
        ))}
      </ul>
      {items.length > SHOWN_MAX && !isWhole && (
        <button type="button" class="button small" onClick={() => setWhole(true)}>
          Show all {items.length}
        </button>
      )}
    </div>
  );
}
