/** A task as somebody types it. Owns what makes it one that can be scheduled, and the words for what is missing. */

import { JsonText } from "../../api/json-text.js";
import type { NewTask, TaskTiming } from "../../api/tasks.js";
import { storedJson } from "../../json/format.js";
import { scanJson } from "../../json/scan.js";
import { parseDuration } from "../../text/duration.js";
import { textOfShown } from "../../text/named.js";

/** When a task is due, as it is offered. */
export const TIMINGS = [
  { id: "now", title: "At once" },
  { id: "delay", title: "In a while" },
  { id: "at", title: "At a moment" },
  { id: "every", title: "Again and again, every so often" },
  { id: "cron", title: "Again and again, by a cron pattern" },
] as const;

/** What was typed. */
export interface Draft {
  readonly queue: string;
  readonly payload: string;
  readonly id: string;
  readonly timing: (typeof TIMINGS)[number]["id"];
  readonly span: string;
  readonly at: string;
  readonly cron: string;
  readonly zone: string;
  readonly maxAttempts: string;
}

/** Nothing typed yet. */
export const EMPTY: Draft = {
  queue: "",
  payload: "{}",
  id: "",
  timing: "now",
  span: "",
  at: "",
  cron: "",
  zone: "",
  maxAttempts: "",
};

/** The task, or what is wrong with it. */
export function taskOf(draft: Draft): NewTask | string {
  const queue = textOfShown(draft.queue);
  const id = textOfShown(draft.id);
  if (queue === "") {
    return "Name the queue.";
  }
  const payload = payloadOf(draft.payload);
  if (typeof payload === "string") {
    return payload;
  }
  const timing = timingOf(draft);
  if (typeof timing === "string") {
    return timing;
  }
  if (!/^\s*\d*\s*$/.test(draft.maxAttempts)) {
    return "The number of attempts is a whole number.";
  }
  const maxAttempts = draft.maxAttempts.trim() === "" ? undefined : Number(draft.maxAttempts);
  return { queue, payload, id, timing, maxAttempts };
}

function payloadOf(typed: string): JsonText | string {
  try {
    return new JsonText(storedJson(scanJson(typed)));
  } catch (fault) {
    return `The payload is no JSON: ${(fault as Error).message}.`;
  }
}

function timingOf({ timing, span, at, cron, zone }: Draft): TaskTiming | string {
  const ms = parseDuration(span);
  switch (timing) {
    case "now":
      return { kind: "now" };
    case "delay":
      return ms === undefined ? "Say in how long it is due: 10m, 2h, 7d." : { kind: "delay", delayMs: ms };
    case "every":
      return ms === undefined ? "Say how often it comes: 10m, 2h, 7d." : { kind: "every", everyMs: ms };
    case "at":
      return Number.isNaN(Date.parse(at))
        ? "Say when it is due: 2026-12-24T18:00:00Z."
        : { kind: "at", executeAt: new Date(at).toISOString() };
    case "cron":
      return cron.trim() === ""
        ? "Say the pattern: 0 3 * * * for each night at three."
        : { kind: "cron", cron: cron.trim(), zone: zone.trim() };
  }
}
