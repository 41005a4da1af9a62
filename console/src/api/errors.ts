/**
 * Errors of any kind as errors of the client. Owns what is made of one that the client does not know, and what is said of a node that is of
 * another cluster.
 */

import { isQuorateError, OtherClusterError, QuorateError } from "quorate";

/** An error of whatever kind as one that can be shown. */
export function asError(error: unknown): QuorateError {
  if (isQuorateError(error)) {
    return error;
  }
  const detail = error instanceof Error ? error.message : String(error);
  return new QuorateError({ code: "internal", detail, applied: "unknown", retry: "never", cause: error });
}

/** What is said where a node of another cluster answers in place of ours. */
export interface Stranger {
  /** What happened. */
  readonly detail: string;
  /** What to do next. */
  readonly advice: string;
}

/** The same, where that is why a call failed. */
export function strangerOf(error: QuorateError | undefined): Stranger | undefined {
  const { cause } = error ?? {};
  return cause instanceof OtherClusterError
    ? {
        detail: `This address leads to a node of the cluster ${cause.cluster}, and the page was opened on the cluster ${cause.expected}. Nothing that the other one says is shown.`,
        advice:
          "If the cluster was restored or founded anew, the page goes over to it after some ten seconds. Otherwise look where the address leads.",
      }
    : undefined;
}
