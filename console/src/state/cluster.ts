/**
 * The state of the cluster, kept up to date for as long as somebody looks.
 *
 * Owns the look at it every two seconds. Nothing here depends on which node leads: the node behind the page answers or forwards, so a
 * failover shows as a change of the leader and of the term, and never needs a reload.
 */

import { computed, signal } from "@preact/signals";
import { isQuorateError, type QuorateError, type Status } from "quorate";
import { client } from "../api/connection.js";
import { identity, noticeRefusal } from "./identity.js";
import { notify } from "./notices.js";

const LOOK_EVERY_MS = 2_000;
/** After a look that failed the next one comes sooner. */
const LOOK_AGAIN_MS = 500;
/** How long one look may take, so that a node that hangs is noticed. */
const LOOK_TIMEOUT_MS = 3_000;

/** What the last good look saw. */
export const status = signal<Status | undefined>(undefined);
/** Why the last look failed; `undefined` where it did not. */
export const trouble = signal<QuorateError | undefined>(undefined);

/** The state of the cluster in a word. */
export const health = computed<"unknown" | "lost" | "no leader" | "well">(() => {
  if (trouble.value !== undefined) {
    return "lost";
  }
  if (status.value === undefined) {
    return "unknown";
  }
  return status.value.leaderId === undefined ? "no leader" : "well";
});

let timer: ReturnType<typeof setTimeout> | undefined;

/** Begins to look. Once for a page. */
export function follow(): void {
  const round = async () => {
    clearTimeout(timer);
    const isGood = document.hidden || (await look());
    timer = setTimeout(() => void round(), isGood ? LOOK_EVERY_MS : LOOK_AGAIN_MS);
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) {
      void round();
    }
  });
  void round();
}

/** Looks once. Says whether it was answered. */
async function look(): Promise<boolean> {
  if (identity.peek().kind === "unknown") {
    // Whoever has not signed in is refused, and an address that is refused too often is not answered for a while.
    return false;
  }
  try {
    const now = await client.cluster.status({ timeoutMs: LOOK_TIMEOUT_MS });
    tellOfNews(status.peek(), now);
    status.value = now;
    trouble.value = undefined;
    return true;
  } catch (error) {
    noticeRefusal(error);
    if (!isQuorateError(error)) {
      throw error;
    }
    trouble.value = error;
    return false;
  }
}

function tellOfNews(before: Status | undefined, now: Status): void {
  const isOther = before !== undefined && before.clusterId !== now.clusterId;
  // A node that is in no cluster yet has none to name.
  if (isOther && before.clusterId !== "" && now.clusterId !== "") {
    notify(
      `Another cluster answers here now, ${now.clusterId}; before that it was ${before.clusterId}. Read again what you had open`,
    );
  } else if (
    before?.leaderId !== undefined &&
    now.leaderId !== undefined &&
    before.leaderId !== now.leaderId
  ) {
    notify(`Node ${now.leaderId} leads now, in term ${now.term}; before that it was node ${before.leaderId}`);
  }
}
