/** One lock or election: who holds it, who waits, and the end of a holder. Owns the question that comes before a lock is broken. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { QuorateError } from "quorate";
import { asError } from "../../api/errors.js";
import { readElection, readLock } from "../../api/locks.js";
import type { Request } from "../../api/request.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { notify } from "../../state/notices.js";
import { perform, useRequest } from "../../state/page.js";
import { addressOf } from "../../state/route.js";
import { isReadOnly } from "../../state/settings.js";
import { shownName } from "../../text/named.js";
import { counted, duration } from "../../text/words.js";
import { useAge } from "../../ui/clock.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Loading } from "../../ui/states.js";
import { endOnceConfirmed } from "../sessions/end.js";
import { type Holder, ofElection, ofLock, outcomeOf, ownerOf, type Queue, waitOf } from "./queues.js";

const LOOK_EVERY_MS = 2_000;

/** Reads a lock or an election. */
export function readQueue(kind: Queue["kind"], name: string): Request<Queue> {
  if (kind === "lock") {
    const request = readLock(name);
    return { ...request, run: async (client, signal) => ofLock(await request.run(client, signal)) };
  }
  const request = readElection(name);
  return { ...request, run: async (client, signal) => ofElection(await request.run(client, signal)) };
}

/** What the panel takes. */
export interface QueuePanelProps {
  readonly kind: Queue["kind"];
  readonly name: string;
  readonly onChanged: () => void;
}

/** The panel. */
export function QueuePanel({ kind, name, onChanged }: QueuePanelProps) {
  const source = useRequest(readQueue(kind, name), `${kind} ${name}`, { everyMs: LOOK_EVERY_MS });
  const [error, setError] = useState<QuorateError | undefined>(undefined);
  const { data: queue, reload } = source;
  const end = async (holder: Holder) => {
    setError(undefined);
    try {
      await brokenOnceConfirmed(kind, name, holder);
    } catch (error) {
      setError(asError(error));
    }
    reload();
    onChanged();
  };
  const only = queue?.holders.length === 1 ? queue.holders[0] : undefined;
  useShortcuts([
    {
      keys: "x",
      what: "Break the lock that is open, or end its leadership",
      group: "Locks",
      run: () => only !== undefined && !isReadOnly.peek() && void end(only),
    },
  ]);
  return (
    <section class="panel" aria-label={`${kind === "lock" ? "Lock" : "Election"} ${shownName(name)}`}>
      <header class="panel-head">
        <h2>
          <KeyName name={name} />
        </h2>
        {queue !== undefined && (
          <span class={queue.holderCount === 0 ? "badge quiet" : "badge good"}>{queue.mode}</span>
        )}
      </header>
      {error !== undefined && <Problem error={error} />}
      {source.error !== undefined && <Problem error={source.error} onRetry={reload} />}
      {queue === undefined ? (
        source.isLoading && <Loading what={kind} />
      ) : (
        <Both queue={queue} onEnd={(holder) => void end(holder)} />
      )}
    </section>
  );
}

interface BothProps {
  readonly queue: Queue;
  readonly onEnd: (holder: Holder) => void;
}

function Both({ queue, onEnd }: BothProps) {
  const ageMs = useAge(queue);
  const isLock = queue.kind === "lock";
  return (
    <>
      {queue.delayLeftMs > ageMs && (
        <p class="hint">
          Its holder was not renewed in time. As that one asked for it, nobody gets it for{" "}
          {duration(queue.delayLeftMs - ageMs)} more.
        </p>
      )}
      <div class="group">
        <h3>{isLock ? "Held by" : "Led by"}</h3>
        {queue.holders.length === 0 && <p class="hint">Nobody.</p>}
        <ul class="people">
          {queue.holders.map((holder) => (
            <li key={holder.session}>
              <Person who={holder}>
                <span>
                  {isLock ? "fence" : "term"} {holder.token}
                </span>
                <span>for {duration(holder.ageMs + ageMs)}</span>
              </Person>
              <button
                type="button"
                class="button small danger-text"
                disabled={isReadOnly.value}
                aria-label={`${isLock ? "Break the lock" : "End the leadership"} of ${ownerOf(holder)}`}
                onClick={() => onEnd(holder)}
              >
                {isLock ? "Break" : "End"}
              </button>
              {holder.value !== undefined && (
                // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
                <pre class="says" tabIndex={0}>
                  {holder.value.pretty}
                </pre>
              )}
            </li>
          ))}
        </ul>
        <More shown={queue.holders.length} count={queue.holderCount} />
      </div>
      <div class="group">
        <h3>
          {isLock ? "Queue" : "Candidates"} <span class="hint">{queue.waiterCount}</span>
        </h3>
        {queue.waiters.length === 0 && <p class="hint">Nobody {isLock ? "waits" : "else stands"}.</p>}
        <ol class="people">
          {queue.waiters.map((waiter) => (
            <li key={waiter.place}>
              <Person who={waiter}>
                {isLock && <span>{waiter.mode}</span>}
                <span>for {duration(waiter.ageMs + ageMs)}</span>
                <span>{waitOf(waiter, ageMs)}</span>
              </Person>
            </li>
          ))}
        </ol>
        <More shown={queue.waiters.length} count={queue.waiterCount} />
      </div>
    </>
  );
}

function More({ shown, count }: { readonly shown: number; readonly count: number }) {
  return count > shown ? <p class="hint">{counted(count - shown, "more", "more")}, not shown.</p> : null;
}

function Person(props: {
  readonly who: Pick<Holder, "owner" | "session">;
  readonly children: ComponentChildren;
}) {
  const { owner, session } = props.who;
  return (
    <div class="person">
      <strong>
        <KeyName name={owner === "" ? "no owner" : owner} />
      </strong>
      <span class="person-facts">
        <a href={addressOf("sessions", { session })}>session {session}</a>
        {props.children}
      </span>
    </div>
  );
}

/** Ends the session of a holder, as things are by now, once that was confirmed. */
async function brokenOnceConfirmed(kind: Queue["kind"], name: string, { session }: Holder): Promise<void> {
  const shown = shownName(name);
  const queue = await perform(readQueue(kind, name));
  const holder = queue.holders.find((other) => other.session === session);
  if (holder === undefined) {
    notify(`${shown}: session ${session} has let go of it by itself`);
    return;
  }
  const isLock = kind === "lock";
  await endOnceConfirmed(session, {
    title: isLock ? `Break the lock ${shown}?` : `End the leadership in ${shown}?`,
    outcome: (
      <p>
        <strong>
          <KeyName name={name} />
        </strong>
        : <bdi>{outcomeOf(queue, holder)}</bdi>
      </p>
    ),
    action: `${isLock ? "Break the lock" : "End the leadership"}: end session ${session}`,
    done: isLock
      ? `The lock ${shown} was broken: session ${session} has ended`
      : `The leadership in ${shown} is over: session ${session} has ended`,
  });
}
