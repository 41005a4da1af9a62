import assert from "node:assert/strict";
import { test } from "node:test";
import type { Problem } from "../src/errors.js";
import { Attempts, type Failure, type Intent, isFinal, pauseMs, RETRY_DEFAULT } from "../src/retry.js";

const READ: Intent = { kind: "read" };
const ONCE: Intent = { kind: "once" };
const WRITE: Intent = { kind: "write", id: "w" };
const REFUSED: Failure = { kind: "connect", reason: "refused" };
const BROKEN: Failure = { kind: "broken", reason: "reset" };

function problem(about: Partial<Problem>): Problem {
  const known = {
    status: 503,
    title: "t",
    detail: "d",
    requestId: "r",
    retry: "same_request_id",
    applied: "no",
  } as const;
  return { code: "no_leader", ...known, ...about };
}

function told(about: Partial<Problem>): Failure {
  return { kind: "problem", reason: "told", problem: problem(about) };
}

test("other nodes are tried at once and rounds back off within bounds", () => {
  const pause = (failures: number, nodes: number, roll: number) =>
    pauseMs(RETRY_DEFAULT, failures, nodes, roll);
  assert.deepEqual([pause(1, 3, 1), pause(2, 3, 1), pause(3, 3, 1), pause(3, 3, 0)], [0, 0, 10, 5]);
  assert.deepEqual(
    [pause(6, 3, 1), pause(3_000_000, 3, 1), pause(1, 1, 1)],
    [20, RETRY_DEFAULT.backoffMaxMs, 10],
  );
});

test("an ambiguous attempt keeps the fate open whatever comes after", () => {
  const attempts = new Attempts();
  attempts.onFailure(REFUSED, WRITE, RETRY_DEFAULT, 3, 0.5);
  assert.equal(attempts.fateOpen, false);
  attempts.onFailure(BROKEN, WRITE, RETRY_DEFAULT, 3, 0.5);
  attempts.onFailure(REFUSED, WRITE, RETRY_DEFAULT, 3, 0.5);
  assert.equal(attempts.fateOpen, true);
  assert.equal(attempts.settledBy(problem({ code: "cas_mismatch" })), false);
  assert.equal(attempts.settledBy(problem({ code: "cas_mismatch", index: 7 })), true);
});

test("a call without an id is repeated only while certainly not applied", () => {
  const once = new Attempts();
  assert.equal(once.onFailure(REFUSED, ONCE, RETRY_DEFAULT, 3, 0.5), 0);
  assert.equal(once.onFailure(BROKEN, ONCE, RETRY_DEFAULT, 3, 0.5), undefined);
  const reads = new Attempts();
  assert.equal(reads.onFailure(BROKEN, READ, RETRY_DEFAULT, 3, 0.5), 0);
  assert.equal(reads.fateOpen, false);
});

test("an overloaded node is given a pause even the first time", () => {
  for (const [advice, pause] of [
    [undefined, 10],
    [3, 10],
    [400, 400],
    [9_000, 1_000],
  ] as const) {
    const failure = told({
      code: "too_many_requests",
      ...(advice === undefined ? {} : { retryAfterMs: advice }),
    });
    assert.equal(new Attempts().onFailure(failure, READ, RETRY_DEFAULT, 3, 1), pause);
  }
});

test("certificates are tried at every node once, and attempts are bounded", () => {
  const tls: Failure = { kind: "tls", reason: "unknown CA" };
  const attempts = new Attempts();
  assert.equal(attempts.onFailure(tls, READ, RETRY_DEFAULT, 2, 1), 0);
  assert.equal(attempts.onFailure(tls, READ, RETRY_DEFAULT, 2, 1), undefined);
  assert.equal(
    new Attempts().onFailure(REFUSED, READ, { ...RETRY_DEFAULT, attemptsMax: 1 }, 3, 1),
    undefined,
  );
});

test("final are refusals but never an unknown fate", () => {
  assert.ok(isFinal(problem({ code: "cas_mismatch", retry: "after_reading" })));
  assert.ok(isFinal(problem({ code: "quota_exceeded" })));
  assert.ok(!isFinal(problem({ code: "no_leader" })));
  assert.ok(!isFinal(problem({ code: "timeout", applied: "unknown" })));
  assert.ok(!isFinal(problem({ code: "internal", retry: "never", applied: "unknown" })));
});
