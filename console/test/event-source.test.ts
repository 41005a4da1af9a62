/**
 * A page's own `EventSource` in a real browser: through an outage it is told that it lasts, comes again by itself, and shows what came
 * after.
 *
 * Owns nothing of the console: the page is an empty one.
 */

import { expect, test } from "vitest";
import { Cluster, openBrowser, openWindow, until } from "./support.js";

/** Long enough that a stream is ended, and that the one after it is not begun. */
const OUTAGE_MS = 35_000;

/** What the page notes, for each node that it watches. */
interface Watching {
  sources: EventSource[];
  told: string[][];
}

test("a page goes on by itself after the cluster had no majority", async () => {
  // Of two nodes each is needed; the page is of no origin.
  const cluster = await Cluster.start({ nodes: 2, nodeArgs: ["--cors-origins", "*"] });
  const { page, faults } = await openWindow(await openBrowser());
  await cluster.client.put("web/a", 1);
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
  }, cluster.endpoints);
  const standing = () =>
    page.evaluate(() => {
      const { sources, told } = (globalThis as unknown as { watching: Watching }).watching;
      return { told, closed: sources.filter(({ readyState }) => readyState === EventSource.CLOSED).length };
    });
  const all = async (what: string) =>
    (await standing()).told.every((told) => told.some((one) => one.includes(what)));
  const ends = async () =>
    Math.max(...(await standing()).told.map((told) => told.filter((one) => one.startsWith("end")).length));

  await until(() => all('"web/a"'));
  await cluster.control("pause_leader", { ms: OUTAGE_MS });
  // The node that is left ends its stream, and then says the same at once in another.
  await until(async () => (await ends()) >= 2);
  expect((await standing()).closed).toBe(0);
  await until(() =>
    cluster.client.put("web/b", 2).then(
      () => true,
      () => false,
    ),
  );
  await until(() => all('"web/b"'));
  expect({ closed: (await standing()).closed, faults }).toEqual({ closed: 0, faults: [] });
}, 180_000);
