/** What it does to end a session, in sentences. Owns the words; whoever asks adds what comes of it elsewhere. */

import type { ComponentChildren } from "preact";
import type { SessionInfo } from "quorate";
import { counted } from "../../text/words.js";
import { KeyName } from "../../ui/key-name.js";
import { unnamed } from "./holds.js";

/** So many names of a kind are listed. */
const NAMES_MAX = 10;

/** What happens when this session ends. */
export function Consequences({ session }: { readonly session: SessionInfo }) {
  const { holds } = session;
  if (holds === undefined || holds.count === 0) {
    return <p>Nothing hangs on it.</p>;
  }
  const held = (list: typeof holds.locks) =>
    list.filter(({ state }) => state === "held").map(({ name }) => name);
  const waiting = [...holds.locks, ...holds.elections].filter(({ state }) => state === "waiting");
  const more = unnamed(holds);
  return (
    <>
      <p>With it go, in one step:</p>
      <ul>
        <Gone
          names={held(holds.locks)}
          one="lock is released"
          many="locks are released"
          then="; who waits first has it"
        />
        <Gone
          names={held(holds.elections)}
          one="leadership ends"
          many="leaderships end"
          then="; the first candidate leads"
        />
        <Gone names={holds.keys} one="entry is deleted" many="entries are deleted" />
        <Gone
          names={holds.tasks ?? []}
          one="task is given back"
          many="tasks are given back"
          then="; others can claim it"
        />
        <Gone
          names={waiting.map(({ name }) => name)}
          one="place in a queue is given up"
          many="places in queues are given up"
        />
        <Gone names={holds.barriers} one="barrier is left" many="barriers are left" />
        {more > 0 && <li>{counted(more, "more thing")} that the node does not name</li>}
      </ul>
    </>
  );
}

interface GoneProps {
  readonly names: readonly string[];
  readonly one: string;
  readonly many: string;
  /** What comes after that. */
  readonly then?: string;
}

function Gone({ names, one, many, then = "" }: GoneProps): ComponentChildren {
  if (names.length === 0) {
    return null;
  }
  const shown = names.slice(0, NAMES_MAX);
  return (
    <li>
      {counted(names.length, one, many)}
      {then}:{" "}
      {shown.map((name, at) => (
        <span key={name}>
          {at > 0 && ", "}
          <KeyName name={name} />
        </span>
      ))}
      {names.length > shown.length && ` and ${counted(names.length - shown.length, "more", "more")}`}
    </li>
  );
}
