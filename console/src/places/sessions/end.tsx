/** Ends a session once that was confirmed. Owns the question: which session of which owner, and all that goes with it. */

import type { ComponentChildren } from "preact";
import { endSession, readSession } from "../../api/sessions.js";
import { notify } from "../../state/notices.js";
import { perform } from "../../state/page.js";
import { counted, duration } from "../../text/words.js";
import { confirm } from "../../ui/confirm.js";
import { KeyName } from "../../ui/key-name.js";
import { Consequences } from "./consequences.js";

/** What is asked, where a session ends for the sake of something else. */
export interface Because {
  readonly title: string;
  /** What comes of it there. */
  readonly outcome: ComponentChildren;
  readonly action: string;
  /** What is said once it is done. */
  readonly done: string;
}

/** Ends it, as it is by now. Throws a `QuorateError`. */
export async function endOnceConfirmed(id: string, because?: Because): Promise<void> {
  const session = await perform(readSession(id));
  if (session === undefined) {
    notify(`Session ${id} has ended by itself`);
    return;
  }
  const owner = session.owner === "" ? "a session without an owner" : session.owner;
  const isSure = await confirm({
    title: because?.title ?? `End session ${id}?`,
    body: (
      <>
        {because?.outcome}
        <p>
          {because === undefined ? "Session" : "For that, session"} <strong>{id}</strong> of{" "}
          <strong>
            <KeyName name={owner} />
          </strong>{" "}
          ends at once. Its owner is not asked, and learns of it at its next renewal. By itself it would live
          for {duration(session.expiresInMs)} more, unless it is renewed.
        </p>
        <Consequences session={session} />
      </>
    ),
    action: because?.action ?? `End session ${id}`,
    isDangerous: true,
  });
  if (isSure) {
    const { count } = await perform(endSession(id));
    notify(because?.done ?? `Session ${id} has ended, and with it ${counted(count, "thing")}`);
  }
}
