import type { LockInfo } from "quorate";
import { expect, test } from "vitest";
import { modeOf, ofElection, ofLock, outcomeOf, waitOf, whoOf } from "./queues.js";

const ANN = { session: "2", owner: "ann", token: "4", mode: "exclusive", ageMs: 12_000 } as const;
const CID = { session: "7", owner: "", token: "6", mode: "exclusive", ageMs: 1_000 } as const;
const BEN = {
  session: "3",
  owner: "ben",
  place: "5",
  mode: "exclusive",
  ageMs: 900,
  waitLeftMs: 50_000,
} as const;

const LOCK: LockInfo = {
  lock: "deploy",
  slots: 1,
  mode: "exclusive",
  holders: [ANN],
  queue: [BEN],
  holderCount: 1,
  waiterCount: 1,
  delayLeftMs: 0,
  revision: "9",
  index: 9,
};

test("how a lock is held is said in words", () => {
  expect(modeOf(1, "exclusive", 1)).toBe("exclusive");
  expect(modeOf(1, "shared", 3)).toBe("shared by 3");
  expect(modeOf(5, "exclusive", 2)).toBe("2 of 5 slots");
  expect(modeOf(1, undefined, 0)).toBe("free");
});

test("a wait without a bound is not told as one that ends", () => {
  expect(waitOf({ waitLeftMs: 86_395_000 }, 2_000)).toBe("waits until it gets it");
  expect(waitOf({ waitLeftMs: 82_800_000 }, 0)).toBe("gives up in 23 h");
  expect(waitOf({ waitLeftMs: 50_000 }, 5_000)).toBe("gives up in 45 s");
  expect(waitOf({ waitLeftMs: 50_000 }, 50_000)).toBe("gives up now");
});

test("what comes of breaking a lock is said: who loses it, and who gets it", () => {
  const lock = ofLock(LOCK);
  expect(whoOf(lock)).toBe("ann");
  expect(outcomeOf(lock, ANN)).toMatch(
    /^ann holds it with the fencing token 4, for 12 s\..*ben \(session 3\) is the next to get it\.$/,
  );
  expect(outcomeOf(ofLock({ ...LOCK, queue: [] }), ANN)).toMatch(/Nobody waits for it\.$/);
  // Its own place in the queue is gone with the session.
  expect(outcomeOf(ofLock({ ...LOCK, queue: [{ ...BEN, session: "2" }] }), ANN)).toMatch(
    /Nobody waits for it\.$/,
  );
  const shared = ofLock({ ...LOCK, slots: 2, holders: [ANN, CID], holderCount: 2 });
  expect(whoOf(shared)).toBe("ann and 1 other");
  expect(outcomeOf(shared, ANN)).toMatch(/session 7 still holds it\./);
});

test("an election is led by one, or by nobody", () => {
  const about = {
    election: "primary",
    candidates: [BEN],
    candidateCount: 1,
    delayLeftMs: 0,
    revision: "9",
    index: 9,
  };
  const leader = { session: "2", owner: "ann", term: "8", since: "2026-11-26T03:00:00Z", ageMs: 5_000 };
  const led = ofElection({ ...about, leader });
  expect([whoOf(led), led.holders[0]?.token]).toEqual(["ann", "8"]);
  expect(outcomeOf(led, { ...ANN, token: "8" })).toMatch(/in term 8.*ben \(session 3\) leads next\.$/);
  expect(whoOf(ofElection({ ...about, leader: null }))).toBe("nobody");
  expect(outcomeOf(ofElection({ ...about, leader, candidates: [] }), ANN)).toMatch(/nobody leads then\.$/);
});
