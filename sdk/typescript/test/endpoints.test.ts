import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AVOID_MIN_MS,
  DISCOVERY_FIRST_MS,
  DISCOVERY_PAUSE_MS,
  Endpoints,
  INTRODUCTION_PAUSE_MS,
  NO_HINT,
} from "../src/endpoints.js";

function introduced(leaderId: number): Endpoints {
  const endpoints = new Endpoints(3, 0);
  for (const node of [0, 1, 2]) {
    endpoints.introduce(node, node + 1, { term: 4n, leaderId });
  }
  return endpoints;
}

function picks(endpoints: Endpoints, count: number, now = 0): number[] {
  return Array.from({ length: count }, () => endpoints.pick("any", undefined, now));
}

test("reads take turns and writes stay with the leader", () => {
  const endpoints = introduced(3);
  assert.deepEqual(picks(endpoints, 4), [0, 1, 2, 0]);
  assert.equal(endpoints.pick("leader", undefined, 0), 2);
  assert.equal(endpoints.pick("leader", undefined, 0), 2);
});

test("a failed leader is forgotten until a newer term names one", () => {
  const endpoints = introduced(3);
  endpoints.onFailure(2, 0);
  assert.notEqual(endpoints.pick("leader", 2, 0), 2);
  endpoints.onAnswer(0, { term: 5n, leaderId: 2 });
  assert.equal(endpoints.pick("leader", undefined, 0), 1);
});

test("an older term does not move the leader", () => {
  const endpoints = introduced(3);
  endpoints.onAnswer(0, { term: 3n, leaderId: 1 });
  assert.equal(endpoints.pick("leader", undefined, 0), 2);
  endpoints.onAnswer(0, { term: 4n, leaderId: undefined });
  assert.equal(endpoints.pick("leader", undefined, 0), 2);
});

test("failing nodes rest longer each time and come back after an answer", () => {
  const endpoints = new Endpoints(2, 0);
  endpoints.onFailure(0, 0);
  endpoints.onFailure(0, 0);
  assert.equal(endpoints.pick("any", undefined, AVOID_MIN_MS), 1);
  assert.equal(endpoints.pick("any", undefined, AVOID_MIN_MS * 2), 0);
  endpoints.onFailure(0, 0);
  endpoints.onAnswer(0, NO_HINT);
  assert.equal(endpoints.pick("any", 1, 0), 0);
});

test("with all nodes down the one that rests least is tried", () => {
  const endpoints = new Endpoints(3, 0);
  for (const node of [0, 0, 1, 2, 2]) {
    endpoints.onFailure(node, 0);
  }
  assert.equal(endpoints.pick("any", undefined, 0), 1);
  assert.notEqual(endpoints.pick("any", 1, 0), 1);
  const single = new Endpoints(1, 0);
  single.onFailure(0, 0);
  assert.equal(single.pick("leader", 0, 0), 0);
});

test("nodes are asked for their ids when the leader is a stranger", () => {
  const endpoints = new Endpoints(3, 1);
  assert.ok(!endpoints.beginIntroduction(0), "no leader is known");
  endpoints.onAnswer(1, { term: 2n, leaderId: 9 });
  assert.ok(endpoints.beginIntroduction(0));
  assert.ok(!endpoints.beginIntroduction(0), "once a second is enough");
  assert.ok(endpoints.beginIntroduction(INTRODUCTION_PAUSE_MS));
  endpoints.introduce(0, 9, { term: 2n, leaderId: 9 });
  assert.ok(!endpoints.beginIntroduction(INTRODUCTION_PAUSE_MS * 2));
});

test("discovered members are asked only while a given node is not well", () => {
  const endpoints = introduced(4);
  endpoints.add(4);
  assert.notEqual(endpoints.pick("leader", undefined, 0), 3, "given nodes forward to the leader");
  assert.ok(picks(endpoints, 3).every((node) => node < 3));
  endpoints.onFailure(0, 0);
  assert.equal(endpoints.pick("leader", undefined, 0), 3);
  const asked = picks(endpoints, 3);
  assert.ok(asked.includes(3) && !asked.includes(0), String(asked));
  endpoints.onAnswer(0, NO_HINT);
  assert.ok(endpoints.pick("any", undefined, 0) < 3);
});

test("when all given nodes are replaced the discovered ones are left", () => {
  const endpoints = new Endpoints(1, 0);
  endpoints.add(4);
  endpoints.add(5);
  endpoints.onFailure(0, 0);
  assert.ok([1, 2, 3].every(() => endpoints.pick("any", 0, 0) > 0));
  endpoints.retain([5, 6]);
  assert.equal(endpoints.pick("any", 0, 0), 2, "node 4 is a member no more");
  assert.ok(endpoints.isKnown(4), "and may come back");
  endpoints.onFailure(1, 0);
  endpoints.onFailure(2, 0);
  endpoints.onFailure(2, 0);
  assert.equal(endpoints.pick("any", 1, 0), 0, "it rests least");
});

test("members are looked for soon after the start and after a failure", () => {
  const endpoints = new Endpoints(2, 0);
  assert.ok(!endpoints.beginDiscovery(DISCOVERY_PAUSE_MS), "nobody asked for it");
  endpoints.discover(0);
  assert.ok(!endpoints.beginDiscovery(0));
  const first = DISCOVERY_FIRST_MS;
  assert.ok(endpoints.beginDiscovery(first) && !endpoints.beginDiscovery(first));
  assert.ok(endpoints.beginDiscovery(first + DISCOVERY_PAUSE_MS));
  endpoints.onFailure(0, first + DISCOVERY_PAUSE_MS);
  assert.ok(endpoints.beginDiscovery(first + DISCOVERY_PAUSE_MS + DISCOVERY_FIRST_MS));
});
