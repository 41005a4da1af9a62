/**
 * How old what is shown of the cluster is, and what that means for it.
 *
 * Owns from when on it counts as old. Pure. A node that is gone says nothing: what it said last must not look like what is.
 */

import type { Members, QuorateError, Status } from "quorate";
import { duration } from "../../text/words.js";
import { outlookOf } from "./advice.js";

/** It is looked at every two seconds; what is older than this was not answered. */
export const OLD_MS = 5_000;

type Member = Members["members"][number];

/** When what is shown came, and whether what was asked since then failed. */
export interface Freshness {
  readonly ageMs: number;
  readonly hasFailed: boolean;
}

/** Whether it may be otherwise by now. */
export function isOld({ ageMs, hasFailed }: Freshness): boolean {
  return hasFailed || ageMs > OLD_MS;
}

/** The freshness of several answers together: that of the oldest. */
export function together(answers: readonly Freshness[]): Freshness {
  return {
    ageMs: Math.max(...answers.map(({ ageMs }) => ageMs)),
    hasFailed: answers.some(({ hasFailed }) => hasFailed),
  };
}

/** The cluster in a sentence, and the colour of it. */
export interface Headline {
  readonly tone: "good" | "warn" | "bad";
  /** Who leads. */
  readonly leader: string;
  /** How its voters are; empty where that is not known. */
  readonly voters: string;
  /** That it is old, and how old; `undefined` where it is not. */
  readonly old: string | undefined;
}

/** The sentence. */
export function headlineOf(status: Status, members: Members | undefined, freshness: Freshness): Headline {
  const all = members?.members.filter((member) => member.role === "voter") ?? [];
  const healthy = all.filter((member) => member.healthy).length;
  const spare = members === undefined ? undefined : healthy - members.needed;
  const isBad = status.leaderId === undefined || (spare ?? 0) < 0;
  const isTight = spare === 0 && all.length > 1;
  const old = isOld(freshness);
  return {
    tone: isBad ? "bad" : isTight || old ? "warn" : "good",
    leader: status.leaderId === undefined ? "No leader" : `Node ${status.leaderId} leads`,
    voters:
      members === undefined ? "" : `, ${healthy} of ${all.length} voters heard of, ${outlookOf(members)}`,
    old: old
      ? `That was ${duration(freshness.ageMs)} ago, and nothing newer came: how it is now is not known.`
      : undefined,
  };
}

/** When the leader last heard of a member, in words. What is old grows older. */
export function heardOf(member: Member, freshness: Freshness): string {
  const old = isOld(freshness);
  if (member.leader) {
    return old ? `led ${duration(freshness.ageMs)} ago` : "leads";
  }
  if (member.lastContactMs === undefined) {
    return !member.healthy ? "not heard of" : old ? `${duration(freshness.ageMs)} ago` : "yes";
  }
  return `${duration(member.lastContactMs + (old ? freshness.ageMs : 0))} ago`;
}

/** The colour of that. */
export function toneOf(member: Member, freshness: Freshness): "good" | "bad" | "warn" {
  return !member.healthy ? "bad" : isOld(freshness) ? "warn" : "good";
}

/** Why leadership cannot be handed to a member; `undefined` where it can. */
export function whyItCannotLead(member: Member, freshness: Freshness): string | undefined {
  if (!member.healthy) {
    return "It is not heard of, so it cannot lead.";
  }
  return isOld(freshness) ? "Whether it is there is not known at the moment." : undefined;
}

/** What a refusal of a change proposes that the console does not have. */
const OR_FORCE = /,? or force it\b/;

/** A refusal, without what the console cannot do. */
export function refusalOf(detail: string): string {
  return detail.replace(OR_FORCE, "");
}

/** What to do about a refusal, by what the console has; `undefined` where it does not propose to force anything. */
export function adviceOnRefusal(
  { code, detail }: Pick<QuorateError, "code" | "detail">,
  command: string,
): string | undefined {
  if (code !== "change_refused" || !OR_FORCE.test(detail)) {
    return undefined;
  }
  const first = detail.includes("add a voter first")
    ? "For one more voter, press `Give a vote` at a learner, or start another node with these in its --join: it votes once it has caught up. "
    : "";
  return `${first}The console forces nothing. The command line does: ${command} --force`;
}
