/**
 * A page's own `EventSource` in a real browser: through an outage it is told that it lasts, comes again by itself, and shows what came
 * after. After a sleep that was longer than the history, and after a restore of the cluster, it begins anew.
 *
 * Owns nothing of the console: the page is an empty one.
 */

import type { Page } from "playwright-core";
import { Client, op } from "quorate";
import { expect, test } from "vitest";
import { Cluster, openBrowser, openWindow, until } from "./support.js";

/** Long enough that a stream is ended, and that the one after it is not begun. */
const OUTAGE_MS = 35_000;

/** What the page notes, for each node that it watches. */
interface Watching {
  sources: EventSource[];
  told: string[][];
}

/** Has a page watch at each of these nodes, and note what it is told. */
async function watchAt(page: Page, endpoints: readonly string[]): Promise<void> {
  await page.evaluate((endpoints) => {
    const watching: Watching = { sources: [], told: endpoints.map(() => []) };
    for (const [at, endpoint] of endpoints.entries()) {
      const source = new EventSource(`${endpoint}/v1/watch?prefix=web/&initial=true&heartbeat_ms=500`);
      for (const name of ["reset", "put", "end"]) {
        source.addEventListener(name, ({ data }: MessageEvent<string>) =>
          watching.told[at]?.push(`${name} ${data}`),
        );
      }
      watching.sources.push(source);
    }
    Object.assign(globalThis, { watching });
  }, endpoints);
}

/** What a page was told so far, by node, and at how many of them it was closed for ever. */
function standing(page: Page): Promise<{ told: string[][]; closed: number }> {
  return page.evaluate(() => {
    const { sources, told } = (globalThis as unknown as { watching: Watching }).watching;
    return { told, closed: sources.filter(({ readyState }) => readyState === EventSource.CLOSED).length };
  });
}

/** Whether each node told this. */
async function all(page: Page, what: string): Promise<boolean> {
  return (await standing(page)).told.every((told) => told.some((one) => one.includes(what)));
}

/** What a page of one node was told since it was told so much. */
async function since(page: Page, before: number): Promise<string[]> {
  return (await standing(page)).told[0]?.slice(before) ?? [];
}

test("a page goes on by itself after the cluster had no majority", async () => {
  // Both nodes are needed for a majority; the page has no origin.
  const cluster = await Cluster.start({ nodes: 2, nodeArgs: ["--cors-origins", "*"] });
  const { page, faults } = await openWindow(await openBrowser());
  await cluster.client.put("web/a", 1);
  await watchAt(page, cluster.endpoints);
  const ends = async () =>
    Math.max(
      ...(await standing(page)).told.map((told) => told.filter((one) => one.startsWith("end")).length),
    );

  await until(() => all(page, '"web/a"'));
  await cluster.control("pause_leader", { ms: OUTAGE_MS });
  // The node that is left ends its stream, and then says the same at once in another.
  await until(async () => (await ends()) >= 2);
  expect((await standing(page)).closed).toBe(0);
  await until(() =>
    cluster.client.put("web/b", 2).then(
      () => true,
      () => false,
    ),
  );
  await until(() => all(page, '"web/b"'));
  expect({ closed: (await standing(page)).closed, faults }).toEqual({ closed: 0, faults: [] });
}, 180_000);

test("a page that slept beyond the history begins anew, and again after a restore", async () => {
  const cluster = await Cluster.start({ nodes: 1, nodeArgs: ["--cors-origins", "*"] });
  const { page, context } = await openWindow(await openBrowser());
  await cluster.client.put("web/a", 1);
  await watchAt(page, cluster.endpoints);
  await until(() => all(page, '"web/a"'));

  // While it sleeps it hears nothing, and history goes on without it.
  const awake = (await since(page, 0)).length;
  await context.setOffline(true);
  await cluster.control("cut_watches");
  await cluster.client.remove("web/a");
  const { revision } = await cluster.client.put("web/b", 2);
  await until(async () => {
    await cluster.client.bulk(Array.from({ length: 100 }, (_, n) => op.put(`busy/${n % 7}`, n)));
    const outcome = await cluster.client.watch({ prefix: "web/", from: revision }).then(
      (watch) => watch.close(),
      (error) => error,
    );
    return outcome?.code === "compacted";
  });
  await context.setOffline(false);
  await until(async () => (await since(page, awake)).some((one) => one.includes('"web/b"')));
  const anew = await since(page, awake);
  expect(anew[0]).toMatch(/^reset .*"code":"compacted"/);
  expect(anew.some((one) => one.includes('"web/a"'))).toBe(false);

  const old = awake + anew.length;
  await cluster.control("restore");
  await until(async () => (await since(page, old)).some((one) => one.includes('"web/b"')));
  expect((await since(page, old)).some((one) => one.startsWith("reset"))).toBe(true);
  // The client of before stays with its cluster for a while yet.
  const client = new Client({ endpoints: cluster.endpoints });
  await client.put("web/c", 3);
  await client.close();
  await until(() => all(page, '"web/c"'));
  expect((await standing(page)).closed).toBe(0);
}, 180_000);
