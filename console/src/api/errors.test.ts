/** Errors that say more than the client does. */

import { Client, type QuorateError } from "quorate";
import { expect, test } from "vitest";
import { asError, strangerOf } from "./errors.js";

/** What a call comes to at an address that leads to nodes of these clusters, one after the other. */
async function failureAfter(...clusters: readonly string[]): Promise<QuorateError | undefined> {
  let calls = 0;
  const client = new Client({
    endpoints: "http://node:1",
    discoverMembers: false,
    timeoutMs: 100,
    onTrouble: () => {},
    fetch: async () => {
      const cluster = clusters[Math.min(calls, clusters.length - 1)] ?? "";
      calls += 1;
      return new Response("{}", { headers: { "quorate-term": "1", "quorate-cluster": cluster } });
    },
  });
  for (const _ of clusters) {
    try {
      await client.cluster.status();
    } catch (error) {
      return asError(error);
    }
  }
  return undefined;
}

test("a node of another cluster is told in plain words, with what to do", async () => {
  expect(await failureAfter("ours", "ours")).toBeUndefined();
  const error = await failureAfter("ours", "theirs");
  expect(strangerOf(error)?.detail).toMatch(/a node of the cluster theirs, and .* on the cluster ours/);
  expect(strangerOf(error)?.advice).toMatch(/the page goes over to it after some ten seconds/);
});

test("another error says nothing of clusters", () => {
  expect(strangerOf(undefined)).toBeUndefined();
  expect(strangerOf(asError(new Error("odd", { cause: new Error("odder") })))).toBeUndefined();
});
