/**
 * What a failed call means for its caller.
 *
 * Owns the classes of errors and their answers to the two questions that matter: was it applied, and may it be tried again. Never
 * guesses: where the outcome of a write is not known the error says so, and carries the id to ask with.
 */

import type { Camel } from "./names.js";
import type { Entry } from "./types.js";
import type { Wire } from "./wire.js";

/** Whether the call took effect. */
export type Applied = Wire["Applied"];
/** What may be done about it: the same again under the same request id, only after reading anew, or nothing. */
export type Retry = Wire["Retry"];
/** A code of the cluster's that this version knows; docs/errors.md explains each. */
export type ClusterCode = Wire["ErrorCode"];
/**
 * A code of this client's own. Where a node would have one for what this client finds out by itself, it is that: `locked` where a lock
 * was not got, `session_expired` where a session is lost, `timeout` where the time ran out.
 */
export type ClientCode = "protocol" | "session_suspect";
/** A code; one of a newer cluster stays readable. */
export type ErrorCode = ClusterCode | ClientCode | (string & {});

/** Which fault of the request where. */
export type InputFault = Camel<Wire["InputFault"]>;
/** Which condition did not hold, and what was found instead. */
export type FailedCondition = Camel<Wire["Failed"]>;

/** Which quota was exceeded: of whom or of which prefix, what it counts, its bound, and how much was used. */
export type QuotaExceeded = Camel<Wire["QuotaExceeded"]>;

/** What the cluster says of an error: a problem document. */
export interface Problem {
  /** What it is. */
  readonly code: ErrorCode;
  /** The HTTP status. */
  readonly status: number;
  /** The code in words. */
  readonly title: string;
  /** What happened, in words. */
  readonly detail: string;
  /** Whether the request took effect. */
  readonly applied: Applied;
  /** What may be done about it. */
  readonly retry: Retry;
  /** The id of the request. */
  readonly requestId: string;
  /** The entry as it is, where a write was refused for it. */
  readonly current?: Entry;
  /** Faults of the request. */
  readonly errors?: InputFault[];
  /** Conditions that did not hold. */
  readonly failed?: FailedCondition[];
  /** The quota that was exceeded. */
  readonly quota?: QuotaExceeded;
  /** How many hold the lock that was asked for. */
  readonly holders?: number;
  /** How many wait for it. */
  readonly waiters?: number;
  /** The log position at which it was decided; absent where it was refused before. */
  readonly index?: number;
  /** The revision at which it was decided. */
  readonly revision?: string;
  /** The oldest revision that can be read. */
  readonly oldestRevision?: string;
  /** When to ask again at the earliest. */
  readonly retryAfterMs?: number;
  /** Whether an earlier try under the same request id had decided it. */
  readonly replayed?: boolean;
}

/** What an error is made of. */
interface About {
  code: ErrorCode;
  detail: string;
  applied: Applied;
  retry: Retry;
  status?: number | undefined;
  requestId?: string | undefined;
  problem?: Problem | undefined;
  cause?: unknown;
}

/** Any error of this client's. */
export class QuorateError extends Error {
  override name = "QuorateError";
  /** What it is. */
  readonly code: ErrorCode;
  /** In words. */
  readonly detail: string;
  /** Whether the call took effect. */
  readonly applied: Applied;
  /** What may be done about it. */
  readonly retry: Retry;
  /** The HTTP status, where a node answered. */
  readonly status: number | undefined;
  /** The id under which `client.requestOutcome(id)` tells what became of the write. */
  readonly requestId: string | undefined;
  /** What the cluster said, where it said something: for a call that was tried in vain, the last time. */
  readonly problem: Problem | undefined;

  constructor(about: About) {
    super(about.detail, about.cause === undefined ? undefined : { cause: about.cause });
    this.code = about.code;
    this.detail = about.detail;
    this.applied = about.applied;
    this.retry = about.retry;
    this.status = about.status ?? about.problem?.status;
    this.requestId = about.requestId ?? about.problem?.requestId;
    this.problem = about.problem;
  }

  /** The entry as it is, where a write was refused for it. */
  get current(): Entry | undefined {
    return this.problem?.current;
  }

  /** Faults of the request. */
  get errors(): readonly InputFault[] {
    return this.problem?.errors ?? [];
  }

  /** Conditions that did not hold. */
  get failed(): readonly FailedCondition[] {
    return this.problem?.failed ?? [];
  }

  /** How many hold the lock that was asked for, where that is what was refused. */
  get holders(): number | undefined {
    return this.problem?.holders;
  }

  /** How many wait for it. */
  get waiters(): number | undefined {
    return this.problem?.waiters;
  }

  /** The oldest revision that can be read, where the one asked for cannot. */
  get oldestRevision(): string | undefined {
    return this.problem?.oldestRevision;
  }

  /** When to ask again at the earliest, where the node said so. */
  get retryAfterMs(): number | undefined {
    return this.problem?.retryAfterMs;
  }

  /** Whether the same call, under the same request id, may succeed later. */
  get isRetryable(): boolean {
    return this.retry === "same_request_id";
  }
}

/** The cluster decided against it. Definite. */
export class RejectedError extends QuorateError {
  override name = "RejectedError";

  constructor(problem: Problem) {
    const { code, detail, applied, retry } = problem;
    super({ code, detail, applied, retry, problem });
  }
}

/** A refusal that is found out here, as the cluster would put it. */
export function refusal(code: "locked" | "not_lock_holder", detail: string, current?: Entry): RejectedError {
  const [status, title] = code === "locked" ? [423, "Locked by somebody else"] : [409, "Not the lock holder"];
  return new RejectedError({
    code,
    status,
    title,
    detail,
    applied: "no",
    retry: "after_reading",
    requestId: "",
    ...(current && { current }),
  });
}

/** What all attempts of a call came to. */
export interface GaveUp {
  /** How often it was sent, or tried to be. */
  readonly attempts: number;
  /** How long that took. */
  readonly elapsedMs: number;
  /** The id of the write. */
  readonly requestId: string | undefined;
  /** The node that was asked last, and what went wrong there. */
  readonly endpoint: string;
  /** What went wrong the last time, in words. */
  readonly reason: string;
  /** What the node said the last time, where it said something. */
  readonly problem: Problem | undefined;
  /** What the runtime said the last time. */
  readonly cause: unknown;
}

function inVain(gaveUp: GaveUp, applied: Applied): About {
  const tries = gaveUp.attempts === 1 ? "try" : "tries";
  const ms = Math.round(gaveUp.elapsedMs);
  const detail = `gave up after ${gaveUp.attempts} ${tries} in ${ms} ms; the last: ${gaveUp.endpoint}: ${gaveUp.reason}`;
  const { requestId, problem, cause } = gaveUp;
  return {
    code: problem?.code ?? "timeout",
    detail,
    applied,
    retry: "same_request_id",
    requestId,
    problem,
    cause,
  };
}

/** No node could serve it in time. It was not applied and never will be. */
export class UnavailableError extends QuorateError {
  override name = "UnavailableError";
  /** How often it was sent, or tried to be. */
  readonly attempts: number;

  constructor(gaveUp: GaveUp) {
    super(inVain(gaveUp, "no"));
    this.attempts = gaveUp.attempts;
  }
}

/** A write may have been applied, and no node could tell in time. Ask again with the request id. */
export class OutcomeUnknownError extends QuorateError {
  override name = "OutcomeUnknownError";
  /** How often it was sent, or tried to be. */
  readonly attempts: number;

  constructor(gaveUp: GaveUp) {
    super(inVain(gaveUp, "unknown"));
    this.attempts = gaveUp.attempts;
  }
}

/** A server answered something that is not Quorate's API. */
export class ProtocolError extends QuorateError {
  override name = "ProtocolError";
  /** What the answer is about, where that is something else than was asked for. */
  readonly about: string | undefined;

  constructor(
    endpoint: string,
    what: string,
    more: { applied?: Applied; requestId?: string | undefined; about?: string; cause?: unknown } = {},
  ) {
    const detail = `unexpected answer from ${endpoint}: ${what}`;
    super({
      code: "protocol",
      detail,
      applied: more.applied ?? "no",
      retry: "never",
      requestId: more.requestId,
      cause: more.cause,
    });
    this.about = more.about;
  }
}

/**
 * A node is of another cluster than ours, which is the one that was heard of first, until the client goes over. `onTrouble` is told of it, and
 * it is the `cause` of the error of a call that no other node could serve.
 */
export class OtherClusterError extends ProtocolError {
  override name = "OtherClusterError";
  /** The id of its cluster. */
  readonly cluster: string;
  /** The id of ours. */
  readonly expected: string;

  constructor(endpoint: string, cluster: string, expected: string) {
    super(
      endpoint,
      `the node is of cluster ${cluster}, not of ${expected}: nothing that it says is believed`,
    );
    this.cluster = cluster;
    this.expected = expected;
  }
}

/** An update lost the race for its entry every time. Not applied. */
export class ContendedError extends QuorateError {
  override name = "ContendedError";
  /** How often it was tried. */
  readonly tries: number;

  constructor(key: string, tries: number, last: QuorateError) {
    const detail = `\`${key}\` changed under each of ${tries} tries to update it`;
    super({
      code: last.code,
      detail,
      applied: "no",
      retry: "same_request_id",
      problem: last.problem,
      cause: last,
    });
    this.tries = tries;
  }
}

/** Why a session is lost: no renewal was confirmed in time, the cluster says that it is over, or it was ended here. */
export type Loss = "not_renewed" | "expired" | "ended";

const LOSSES: Record<Loss, string> = {
  not_renewed: "no renewal was confirmed in time",
  expired: "the cluster says that it is over",
  ended: "it was ended",
};

/** A session is lost, or no renewal of it was confirmed lately: what it holds is not certain, and nothing was done. */
export class SessionError extends QuorateError {
  override name = "SessionError";
  /** Its id. */
  readonly session: string;
  /** Why it is lost; `undefined` where it still lives, but was not renewed for half of its time. */
  readonly loss: Loss | undefined;

  constructor(session: string, loss: Loss | undefined) {
    const why =
      loss === undefined ? "is suspect: no renewal of it was confirmed lately" : `is lost: ${LOSSES[loss]}`;
    const code = loss === undefined ? "session_suspect" : "session_expired";
    const retry = loss === undefined ? "same_request_id" : "after_reading";
    super({ code, detail: `session ${session} ${why}`, applied: "no", retry });
    this.session = session;
    this.loss = loss;
  }
}

/** A mirror did not come to a revision in time. What it has is older. */
export class BehindError extends QuorateError {
  override name = "BehindError";
  /** The revision that it shows. */
  readonly reached: string;

  constructor(prefix: string, revision: string, reached: string, cause: unknown) {
    const detail = `the mirror of \`${prefix}\` is at revision ${reached}, not yet at ${revision}`;
    super({ code: "timeout", detail, applied: "no", retry: "same_request_id", cause });
    this.reached = reached;
  }
}

/** The call makes no sense and was not sent. */
export class InvalidArgumentError extends QuorateError {
  override name = "InvalidArgumentError";

  constructor(detail: string, cause?: unknown) {
    super({ code: "invalid_argument", detail, applied: "no", retry: "never", cause });
  }
}

/**
 * Whether this is an error of this client's, and with codes given, whether it has one of them.
 *
 * ```ts
 * if (isQuorateError(error, "cas_mismatch")) console.log(error.current?.value);
 * ```
 */
export function isQuorateError<Code extends ErrorCode = ErrorCode>(
  error: unknown,
  ...codes: Code[]
): error is QuorateError & { readonly code: Code } {
  return error instanceof QuorateError && (codes.length === 0 || (codes as string[]).includes(error.code));
}
