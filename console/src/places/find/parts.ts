/** A change of all entries that match, part by part. Owns that the parts come one after the other, and what they sum up to. */

import type { WhereAnswer } from "quorate";
import type { JsonText } from "../../api/json-text.js";
import { deleteMatching, type Matching, type Part, updateMatching } from "../../api/matching.js";
import type { Request } from "../../api/request.js";
import { perform } from "../../state/page.js";
import type { Failure, Step } from "../../ui/work.js";

/** Entries of one part: few enough for a progress that moves, enough to be quick. */
const PART_ENTRIES = 500;

/** What is done to all that match. */
export type Change = { readonly verb: "update"; readonly patch: JsonText } | { readonly verb: "delete" };

/** What the parts so far come to. */
export interface Sum {
  readonly matched: number;
  readonly applied: number;
  readonly examined: number;
  /** Entries that were skipped or failed, and why. */
  readonly failures: readonly Failure[];
}

/** No part yet. */
export const NOTHING: Sum = { matched: 0, applied: 0, examined: 0, failures: [] };

/** The sum with one part more. */
export function added(sum: Sum, part: WhereAnswer): Sum {
  return {
    matched: sum.matched + part.matched,
    applied: sum.applied + part.applied,
    examined: sum.examined + part.examined,
    failures: [...sum.failures, ...failuresOf(part)],
  };
}

function failuresOf({ results }: WhereAnswer): Failure[] {
  return results
    .filter(({ outcome }) => outcome !== "applied")
    .map(({ key, code, detail, outcome }) => ({ name: key, detail: detail ?? code ?? outcome }));
}

function requestOf(matching: Matching, change: Change, part: Part): Request<WhereAnswer> {
  return change.verb === "update"
    ? updateMatching(matching, change.patch, part)
    : deleteMatching(matching, part);
}

/** Makes the parts. Tells the sum after each. */
export async function* parts(
  matching: Matching,
  change: Change,
  dryRun: boolean,
  tell: (sum: Sum) => void,
): AsyncGenerator<Step> {
  let sum = NOTHING;
  let cursor: string | undefined;
  do {
    const part = await perform(requestOf(matching, change, { dryRun, limit: PART_ENTRIES, cursor }));
    sum = added(sum, part);
    tell(sum);
    cursor = part.cursor;
    yield { done: part.applied, failures: failuresOf(part) };
  } while (cursor !== undefined);
}
