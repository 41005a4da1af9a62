import assert from "node:assert/strict";
import { test } from "node:test";
import { Lease } from "../src/lease.js";

const TTL = 9_000;
const lease = () => new Lease(TTL, TTL / 3, 0, 0, () => 0);

test("without renewals it becomes suspect at half and lost before its time is over", () => {
  const states = [0, 4_499, 4_500, 8_099, 8_100, 9_000].map((at) => lease().state(at));
  assert.deepEqual(states, ["alive", "alive", "suspect", "suspect", "lost", "lost"]);
  assert.equal(lease().loss(8_100), "not_renewed");
  assert.deepEqual(
    [lease().changesAt(0), lease().changesAt(4_500), lease().changesAt(8_100)],
    [4_500, 8_100, undefined],
  );
});

test("a renewal counts from when it was sent and not from its answer", () => {
  const renewed = lease();
  renewed.onSent();
  renewed.onConfirmed(3_000, 8_000);
  assert.equal(renewed.deadline(), 11_100);
  assert.equal(renewed.state(8_000), "suspect", "that answer is old news already");
  renewed.onConfirmed(2_000, 8_001);
  assert.equal(renewed.deadline(), 11_100, "an older one takes nothing back");
});

test("an answer after the deadline brings nothing back", () => {
  const late = lease();
  late.onSent();
  late.onConfirmed(8_000, 8_100);
  assert.equal(late.loss(8_100), "not_renewed");
  assert.equal(late.renewalAt(), undefined);
});

test("what the cluster ends is lost at once and for the first reason", () => {
  const ended = lease();
  ended.onOver("expired", 1);
  ended.onOver("ended", 2);
  assert.equal(ended.state(1), "lost");
  assert.equal(ended.loss(9_999), "expired");
});

test("renewals are due at a third, one at a time, and soon again after a failure", () => {
  const due = lease();
  assert.equal(due.renewalAt(), 3_000);
  due.onSent();
  assert.equal(due.renewalAt(), undefined);
  due.onFailed(4_500);
  const again = due.renewalAt() ?? 0;
  assert.ok(again > 4_500 && again < 4_800, String(again));
  due.onSent();
  due.onConfirmed(4_600, 4_700);
  assert.equal(due.renewalAt(), 7_600);
});

test("three rounds fit between the first renewal and the deadline of any session", () => {
  for (const ttl of [100, 250, 1_000, 10_000, 86_400_000]) {
    const any = new Lease(ttl, ttl, 0, 0, () => 0);
    assert.ok((any.renewalAt() ?? Number.NaN) + any.roundMs() * 2 < any.deadline(), String(ttl));
    assert.ok(any.deadline() < ttl, String(ttl));
  }
});

test("sessions join a renewal a little early but never right after their own", () => {
  assert.ok(!lease().mayJoin(2_000));
  assert.ok(lease().mayJoin(2_250) && lease().mayJoin(3_000));
});

test("after a suspend a session is suspect until a renewal that was sent after it", () => {
  let ahead = 1e12;
  const slept = new Lease(TTL, TTL / 3, 0, ahead, () => ahead);
  ahead += TTL / 10;
  assert.deepEqual([slept.state(1_000), slept.renewalAt()], ["alive", 3_000], "clocks do not run alike");
  slept.onSent();
  ahead += 600_000;
  assert.equal(slept.state(1_000), "suspect");
  // It was on its way before.
  slept.onConfirmed(1_000, 2_000);
  assert.deepEqual([slept.state(2_000), slept.loss(2_000), slept.renewalAt()], ["suspect", undefined, 1_000]);
  slept.onSent();
  slept.onFailed(2_000);
  assert.ok((slept.renewalAt() ?? 0) > 2_000, "after a failure there is a pause");
  slept.onSent();
  slept.onConfirmed(2_100, 2_500);
  assert.deepEqual([slept.state(3_000), slept.renewalAt()], ["alive", 5_100]);
  // Nothing ends because a clock was set back, and nothing is prolonged.
  ahead -= 86_400_000;
  assert.deepEqual([slept.state(3_000), slept.state(2_100 + TTL)], ["alive", "lost"]);
});

test("a session whose creation a suspend fell into is suspect", () => {
  const slept = new Lease(TTL, TTL / 3, 100, 0, () => 600_000);
  assert.deepEqual([slept.state(101), slept.renewalAt()], ["suspect", 100]);
});
