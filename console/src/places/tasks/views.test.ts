import type { QueueStats } from "quorate";
import { describe, expect, test } from "vitest";
import type { StoredTask } from "../../api/tasks.js";
import { ahead, isPast, isShown, recurrence, VIEWS, viewOf, when } from "./views.js";

const NOW = Date.parse("2026-11-26T12:00:00Z");

function task(more: Partial<StoredTask>): StoredTask {
  return {
    id: "t",
    state: "scheduled",
    createdAt: "2026-11-26T11:00:00Z",
    attempts: 0,
    maxAttempts: 20,
    backoff: {},
    runs: 0,
    ...more,
  } as StoredTask;
}

const DUE = task({ executeAt: "2026-11-26T11:57:00Z" });
const LATER = task({ executeAt: "2026-11-26T12:05:00Z" });

function view(id: string) {
  return viewOf(id, undefined);
}

describe("views", () => {
  test("dead letters are shown first where there are any", () => {
    expect(viewOf(null, { dead: 1 } as QueueStats).id).toBe("dead");
    expect(viewOf(null, { dead: 0 } as QueueStats).id).toBe("due");
    expect(viewOf("claimed", { dead: 1 } as QueueStats).id).toBe("claimed");
    expect(viewOf("nonsense", undefined).id).toBe("due");
  });

  test("each scheduled task is in one of two", () => {
    expect([isShown(view("due"), DUE, NOW), isShown(view("waiting"), DUE, NOW)]).toEqual([true, false]);
    expect([isShown(view("due"), LATER, NOW), isShown(view("waiting"), LATER, NOW)]).toEqual([false, true]);
    expect(VIEWS.filter(({ state }) => state === "scheduled").map(({ id }) => id)).toEqual([
      "due",
      "waiting",
    ]);
  });

  test("no more is read once one is not due", () => {
    expect(isPast(view("due"), [DUE], NOW)).toBe(false);
    expect(isPast(view("due"), [DUE, LATER], NOW)).toBe(true);
    expect(isPast(view("waiting"), [DUE, LATER], NOW)).toBe(false);
    expect(isPast(view("due"), [], NOW)).toBe(false);
  });
});

describe("words", () => {
  test.each([
    [DUE, "due since 3 min"],
    [LATER, "due in 5 min"],
    [task({ state: "claimed", leaseMs: 41_000 }), "for 41 s more"],
    [task({ state: "dead", diedAt: "2026-11-26T10:00:00Z" }), "died 2 h ago"],
    [task({ state: "done", keptMs: 60_000 }), "id kept 1 min more"],
    [task({ state: "unplanned" }), "its next time is being worked out"],
  ])("%#", (task, words) => {
    expect(when(task, NOW)).toBe(words);
  });

  test("what comes again says how", () => {
    expect(recurrence(task({ cron: "0 3 * * *", zone: "Europe/Berlin" }))).toBe("0 3 * * * (Europe/Berlin)");
    expect(recurrence(task({ everyMs: 60_000 }))).toBe("every 1 min");
    expect(recurrence(DUE)).toBeUndefined();
    expect(ahead("2026-11-26T11:00:00Z", NOW)).toBe("now");
  });
});
