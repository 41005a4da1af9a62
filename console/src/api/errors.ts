/** Errors of any kind as errors of the client. Owns what is made of one that the client does not know. */

import { isQuorateError, QuorateError } from "quorate";

/** An error of whatever kind as one that can be shown. */
export function asError(error: unknown): QuorateError {
  if (isQuorateError(error)) {
    return error;
  }
  const detail = error instanceof Error ? error.message : String(error);
  return new QuorateError({ code: "internal", detail, applied: "unknown", retry: "never", cause: error });
}
