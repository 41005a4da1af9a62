/** Barriers and latches. Owns that they are looked at by name: nodes list none of them. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { BarrierInfo, LatchInfo } from "quorate";
import { readBarrier, readLatch } from "../../api/locks.js";
import { type Source, useRequest } from "../../state/page.js";
import { shownName, textOfShown } from "../../text/named.js";
import { grouped } from "../../text/words.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Empty, Loading } from "../../ui/states.js";

const LOOK_EVERY_MS = 2_000;

/** What it takes. */
export interface MeetingsProps {
  readonly name: string | undefined;
  readonly onName: (name: string) => void;
}

/** The form, and what has this name. */
export function Meetings({ name, onName }: MeetingsProps) {
  const [typed, setTyped] = useState(shownName(name ?? ""));
  return (
    <>
      <form
        class="toolbar"
        onSubmit={(event) => {
          event.preventDefault();
          onName(textOfShown(typed));
        }}
      >
        <input
          class="grow mono"
          type="text"
          aria-label="Name of a barrier or latch"
          placeholder="Name of a barrier or latch …"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="submit" class="button primary" disabled={typed === ""}>
          Look
        </button>
      </form>
      {name === undefined || name === "" ? (
        <Empty title="Name a barrier or a latch">
          <p>Nodes do not list them. What a session waits at stands with the session.</p>
        </Empty>
      ) : (
        <div class="columns">
          <Barrier key={`barrier ${name}`} name={name} />
          <Latch key={`latch ${name}`} name={name} />
        </div>
      )}
    </>
  );
}

const BARRIER_STATES = {
  waiting: "They wait for the others.",
  open: "It is open. Once all have left, it can be entered anew.",
  empty: "Nobody is at it.",
} as const;

function Barrier({ name }: { readonly name: string }) {
  const source = useRequest(readBarrier(name), name, { everyMs: LOOK_EVERY_MS });
  return (
    <Looked title="Barrier" name={name} source={source}>
      {({ state, entered, parties }: BarrierInfo) => (
        <>
          <p class="big">
            {grouped(entered)}
            {parties !== undefined && <span> of {grouped(parties)} are in</span>}
          </p>
          {parties !== undefined && <progress value={entered} max={parties} aria-label="How many are in" />}
          <p class="hint">{BARRIER_STATES[state]}</p>
        </>
      )}
    </Looked>
  );
}

function Latch({ name }: { readonly name: string }) {
  const source = useRequest(readLatch(name), name, { everyMs: LOOK_EVERY_MS });
  return (
    <Looked title="Latch" name={name} source={source}>
      {({ open, left, count }: LatchInfo) => (
        <>
          <p class="big">
            {grouped(left)}
            <span> of {grouped(count)} left</span>
          </p>
          <progress value={count - left} max={count} aria-label="How far it is counted down" />
          <p class="hint">{open ? "It is open, for good." : "It opens when nothing is left."}</p>
        </>
      )}
    </Looked>
  );
}

interface LookedProps<T> {
  readonly title: string;
  readonly name: string;
  readonly source: Source<T>;
  readonly children: (data: T) => ComponentChildren;
}

function Looked<T>({ title, name, source, children }: LookedProps<T>) {
  const { data, error, isLoading, reload } = source;
  return (
    <section class="panel" aria-label={`${title} ${shownName(name)}`}>
      <h2>
        {title} <KeyName name={name} />
      </h2>
      {error?.code === "not_found" ? (
        <p class="hint">There is none of this name.</p>
      ) : error !== undefined ? (
        <Problem error={error} onRetry={reload} />
      ) : data === undefined ? (
        isLoading && <Loading what={title} lines={2} />
      ) : (
        children(data)
      )}
    </section>
  );
}
