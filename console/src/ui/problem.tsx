/**
 * An error as people need it: what happened, whether anything took effect, what to do next.
 *
 * Owns the advice for each code, in the words of `docs/errors.md`.
 */

import type { QuorateError } from "quorate";
import { strangerOf } from "../api/errors.js";
import { userName } from "../state/identity.js";
import { shownName } from "../text/named.js";
import { Icon } from "./icon.js";
import { Said } from "./key-name.js";

const ADVICE: Readonly<Record<string, string>> = {
  already_exists: "Somebody created it meanwhile. Open it, and decide by what is there.",
  cas_mismatch: "Compare your change with what is there now, and save again on its cas.",
  change_refused: "Mend what the text above names, and ask again.",
  compacted:
    "That is too old to be read. Begin with a later revision; nodes keep more with --history-keep-ms.",
  condition_not_met: "Decide anew by the entry as it is now.",
  different_settings: "All who use it have to name the same number. Use that, or another name.",
  guard_failed: "Somebody else may hold the lock. Acquire it anew before you go on.",
  in_use: "Take it away from what needs it first.",
  internal:
    "A node met a bug or a fault of its own. Its log has the rest, and `/v1/cluster/faults` may have more.",
  invalid_argument: "Mend what is named above. The same request can only fail again.",
  invalid_document: "Mend the document, or the rules of its collection.",
  locked: "Wait until the lock ends, and try again.",
  no_leader:
    "An election is under way, or the node has no connection to a majority. It is tried again by itself.",
  not_found: "Somebody removed it, or it has expired.",
  not_lock_holder: "It is not held any more. Acquire it anew.",
  not_ready: "The node is starting, stopping or catching up. It is tried again by itself.",
  permission_denied: "Somebody who may administer the cluster can give you a role that allows it.",
  precondition_required: "Its collection takes no write that does not say what it expects.",
  protocol: "Something between this page and the node answers in its place. Reload the page.",
  quarantined: "This node does not trust its own state. Open the console of another node.",
  quota_exceeded: "Remove what is not needed, or make room. Removals still work.",
  read_only: "Switch `Read only` off first, in the corner at the left.",
  session_expired: "What hung on the session is gone. Choose another session, or none.",
  timeout: "No node could answer in time. Look at the cluster, and try again.",
  too_dear: "Ask with fewer conditions or operations, or split the document.",
  too_large: "Send less at once. `/v1/limits` says how much is allowed.",
  too_many_requests: "Wait a little, and try again.",
  unauthenticated: "Sign in with a token that is valid.",
  unique_violation: "Choose other values, or change the other document first.",
};

const APPLIED = {
  no: "Nothing was changed.",
  yes: "It took effect.",
  unknown: "It is not known whether it took effect.",
} as const;

/** What an error takes. */
export interface ProblemProps {
  readonly error: QuorateError;
  /** In place of the detail of the error. */
  readonly detail?: string | undefined;
  /** In place of the advice for its code. */
  readonly advice?: string | undefined;
  /** Tries it again. */
  readonly onRetry?: (() => void) | undefined;
}

/** Whether an error says that something is not allowed, rather than that something is wrong. */
function isRefusal(error: QuorateError): boolean {
  return error.code === "permission_denied" || error.code === "unauthenticated";
}

function titleOf(error: QuorateError): string {
  if (error.code === "permission_denied") {
    const user = userName();
    return `${user === undefined ? "You" : `The user ${shownName(user)}`} may not do this`;
  }
  return strangerOf(error) === undefined
    ? (error.problem?.title ?? "That did not work")
    : "A node of another cluster answered";
}

/** An error. */
export function Problem({ error, detail, advice, onRetry }: ProblemProps) {
  const stranger = strangerOf(error);
  return (
    <section class={`problem ${isRefusal(error) ? "refused" : ""}`} role="alert">
      <Icon name={isRefusal(error) ? "lock" : "warning"} />
      <div class="problem-text">
        <p class="problem-title">{titleOf(error)}</p>
        <p>
          <Said text={detail ?? stranger?.detail ?? error.detail} />
        </p>
        <ul class="problem-list">
          {error.errors.map((fault) => (
            <li key={fault.pointer}>
              <code>{fault.pointer}</code> {fault.detail}
            </li>
          ))}
        </ul>
        <p class="problem-next">
          {APPLIED[error.applied]} {advice ?? stranger?.advice ?? ADVICE[error.code]}
        </p>
        <dl class="problem-facts">
          <div>
            <dt>code</dt>
            <dd>{error.code}</dd>
          </div>
          <div>
            <dt>applied</dt>
            <dd>{error.applied}</dd>
          </div>
          {error.requestId !== undefined && error.requestId !== "" && (
            <div>
              <dt>request id</dt>
              <dd>{error.requestId}</dd>
            </div>
          )}
        </dl>
        {onRetry !== undefined && (
          <button type="button" class="button" onClick={onRetry}>
            Try again
          </button>
        )}
      </div>
    </section>
  );
}
