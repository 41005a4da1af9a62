/**
 * The live watch as somebody uses it, on three nodes that can be hurt: nothing is lost over a dead leader, nothing comes twice, what was
 * compacted meanwhile is told, and the memory of the page stays as it is.
 *
 * QUORATE_WATCH_EVENTS: how many changes at once the page is shown for the memory of it; 360000 are as many as an hour of 100 a second has.
 * QUORATE_WATCH_SECONDS: for how long it is shown 100 a second; 3600 are the hour itself.
 */

import type { Browser, Page } from "playwright-core";
import { isQuorateError, op } from "quorate";
import { afterEach, beforeAll, expect, test } from "vitest";
import { findingsOf } from "./axe.js";
import { Cluster, openBrowser, openWindow, until } from "./support.js";

const EVENTS = Number(process.env["QUORATE_WATCH_EVENTS"] ?? 60_000);
const SECONDS = Number(process.env["QUORATE_WATCH_SECONDS"] ?? 120);
/** So many the page keeps. */
const KEPT = 2_000;

let cluster: Cluster;
let browser: Browser;
let page: Page;
let faults: string[] = [];

beforeAll(async () => {
  cluster = await Cluster.start();
  browser = await openBrowser();
  ({ page, faults } = await openWindow(browser));
});

afterEach(() => {
  expect(faults.splice(0)).toEqual([]);
});

const watch = async (query: string) => {
  await page.goto(`${cluster.console}watch${query}`);
  await page.getByText("Live", { exact: true }).waitFor();
};
const row = (name: string) => page.locator(".row").filter({ hasText: name });
const panel = () => page.locator(".panel");
/** The keys of the lines in the page, the newest first. */
const keys = () => page.locator(".row .key-name").allTextContents();
const shown = (count: number) => until(async () => (await keys()).length === count);
const standing = () => page.locator(".watch-standing");

test("each change shows as it happens, with what it was before and how that differs", async () => {
  const { client } = cluster;
  await client.put("orders/o1", { status: "new", n: 12345678901234567890n });
  await watch("?prefix=orders%2F");
  await page.getByText("No change yet").waitFor();
  await client.put("stock/pears", 1);
  await client.patch("orders/o1", { status: "paid" });
  await client.put("orders/o2", 1);
  await client.remove("orders/o2");
  await shown(3);
  expect(await keys()).toEqual(["orders/o2", "orders/o2", "orders/o1"]);
  expect(await standing().textContent()).toContain("3 changes");
  expect(await page.locator(".row .badge").allTextContents()).toEqual(["deleted", "created", "written"]);
  await row("orders/o1").click();
  await panel().locator(".diff.removed").getByText('"status": "new"').waitFor();
  await panel().locator(".diff.added").getByText('"status": "paid"').waitFor();
  await panel().getByText("12345678901234567890").waitFor();
  await panel().getByRole("link", { name: "History" }).click();
  await page.getByRole("heading", { name: "orders/o1" }).waitFor();
});

test("kinds, conditions and parts narrow it down, and stand in the address", async () => {
  const { client } = cluster;
  await watch("");
  await page.keyboard.press("/");
  await page.keyboard.type("jobs/");
  await page.getByLabel("Kinds of changes").selectOption("put");
  await page.getByLabel(/Of which this holds/).fill("n gte 2.50");
  await page.keyboard.press("Enter");
  await page.waitForURL(/prefix=jobs%2F&events=put&where=n%20gte%202.50$/);
  await page.getByText("Live", { exact: true }).waitFor();
  for (const n of [1, 2, 3]) {
    await client.put(`jobs/${n}`, { n });
    await client.remove(`jobs/${n}`);
  }
  await client.put("jobs/4", { n: 4 });
  await shown(2);
  expect(await keys()).toEqual(["jobs/4", "jobs/3"]);

  await page.getByLabel(/Only a part/).fill("4/4");
  await page.keyboard.press("Enter");
  await page.getByText(/a part is like 0\/4/).waitFor();
  const windows: Awaited<ReturnType<typeof openWindow>>[] = [];
  for (const part of ["0", "1"]) {
    const window = await openWindow(browser);
    await window.page.goto(`${cluster.console}watch?prefix=parts%2F&part=${part}%2F2`);
    await window.page.getByText("Live", { exact: true }).waitFor();
    windows.push(window);
  }
  await client.bulk(Array.from({ length: 20 }, (_, n) => op.put(`parts/${n}`, n)));
  const ofBoth = async () => {
    const each = windows.map(({ page }) => page.locator(".row .key-name").allTextContents());
    return (await Promise.all(each)).flat();
  };
  await until(async () => (await ofBoth()).length === 20);
  expect(new Set(await ofBoth()).size).toBe(20);
  for (const { page, context } of windows) {
    expect(await page.locator(".row").count()).toBeGreaterThan(0);
    await context.close();
  }
});

test("changes of one step are told as such", async () => {
  await watch("?prefix=step%2F");
  await cluster.client.txn({ then: ["a", "b", "c"].map((key) => op.put(`step/${key}`, 1)) });
  await shown(3);
  await row("step/b").getByText("2 of 3").waitFor();
  await row("step/b").click();
  await panel().getByText("change 2 of 3").waitFor();
});

test("it is paused and goes on, nothing is missed meanwhile, and it is cleared", async () => {
  const { client } = cluster;
  await watch("?prefix=pause%2F");
  await client.put("pause/1", 1);
  await shown(1);
  await page.keyboard.press("p");
  await page.getByText("Paused").waitFor();
  await client.put("pause/2", 1);
  await client.put("pause/3", 1);
  await page.getByText("Paused, 2 new").waitFor();
  expect(await keys()).toEqual(["pause/1"]);
  await page.keyboard.press("p");
  await shown(3);
  // To open a change holds the list, so that it does not run away from who reads.
  await row("pause/2").click();
  await client.put("pause/4", 1);
  await page.getByText("Paused, 1 new").waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await shown(4);
  await page.keyboard.press("Escape");
  await panel().waitFor({ state: "detached" });
  await page.keyboard.press("Shift+C");
  await page.getByText("No change yet").waitFor();
  await client.put("pause/5", 1);
  await shown(1);
});

test("a key alone is watched, and why it goes", async () => {
  await watch("?key=mortal");
  const session = await cluster.client.session();
  await cluster.client.put("mortal", 1, { session });
  await cluster.client.put("mortal/not", 1);
  await session.end();
  await row("session ended").waitFor();
  expect(await keys()).toEqual(["mortal", "mortal"]);
});

test("the leader dies while somebody watches: nothing is lost, nothing comes twice, and it is told", async () => {
  const { client } = cluster;
  // The stream is to break with the leader: so that leads which serves it.
  const serving = () =>
    page.evaluate(async () => {
      const response = await fetch("/v1/cluster/status");
      return ((await response.json()) as { node_id: number }).node_id;
    });
  let node = 0;
  await until(async () => {
    await watch("?prefix=steady%2F");
    const before = node;
    node = await serving();
    return before === node;
  });
  if ((await client.cluster.status()).leaderId !== node) {
    await client.cluster.transferLeader(node);
  }
  const COUNT = 120;
  let written = 0;
  const writing = (async () => {
    for (; written < COUNT; written += 1) {
      await client.put(`steady/${String(written).padStart(3, "0")}`, written, {
        requestId: `steady-${written}`,
      });
    }
  })();
  await until(async () => written > 20);
  await cluster.control("kill_leader");
  await writing;
  await row("steady/119").waitFor({ timeout: 30_000 });
  const all: string[] = [];
  const notes = new Set<string>();
  await page.getByRole("listbox").focus();
  // Only what can be seen is in the page: it is read from the newest to the oldest.
  await page.keyboard.press("p");
  while (!all.includes("steady/000")) {
    all.push(...(await keys()).filter((key) => !all.includes(key)));
    for (const note of await page.locator(".note-text").allTextContents()) {
      notes.add(note);
    }
    await page.keyboard.press("PageDown");
  }
  expect([...notes].join()).toMatch(/taken up again .*right behind revision \d+: nothing is missing/);
  expect([...all].sort()).toEqual(
    Array.from({ length: COUNT }, (_, n) => `steady/${String(n).padStart(3, "0")}`),
  );
  await standing().getByText(`${COUNT} changes`).waitFor();
  await cluster.control("restart");
});

test("a connection that is lost is told while it lasts", async () => {
  await watch("?prefix=cut%2F");
  await cluster.control("cut_watches");
  await row("nothing is missing").waitFor();
  await cluster.client.put("cut/1", 1);
  await row("cut/1").waitFor();
  expect(await findingsOf(page)).toEqual([]);
});

test("what was compacted is told, and it goes on from what can be read", async () => {
  const { client } = cluster;
  // History is kept for 300 revisions and 3 seconds, by the clock of the cluster, which goes on with what is written.
  const first = await client.put("clock", 0);
  await until(async () => {
    for (let n = 0; n < 50; n += 1) {
      await client.put("clock", n);
    }
    try {
      await client.get("clock", { revision: first.revision });
      return false;
    } catch (error) {
      return isQuorateError(error, "compacted");
    }
  });
  await watch("?prefix=old%2F&from=1");
  await row("History was compacted").waitFor();
  expect(await row("History was compacted").textContent()).toMatch(
    /before revision \d+ is lost to this page/,
  );
  await client.put("old/1", 1);
  await row("old/1").waitFor();
});

/** How much the page holds, garbage collected. */
async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}

const shownSoFar = (made: number) =>
  standing()
    .getByText(`${made.toString().replace(/\B(?=(\d{3})+$)/g, "\u202f")} changes`)
    .waitFor({ timeout: 60_000 });

test("the memory of the page does not grow with what it was shown", async () => {
  const { client } = cluster;
  await watch("?prefix=many%2F");
  let made = 0;
  const make = async (count: number) => {
    for (let left = count; left > 0; left -= 1_000) {
      await client.bulk(
        Array.from({ length: 1_000 }, (_, n) =>
          op.put(`many/${n}`, { made: made + n, text: "x".repeat(100) }),
        ),
      );
      made += 1_000;
    }
    await shownSoFar(made);
  };
  // Once the ring is full, and what is compiled is compiled.
  await make(5 * KEPT);
  const before = await heapOf(page);
  await make(EVENTS);
  const after = await heapOf(page);
  console.log(`heap: ${before} bytes after ${5 * KEPT} changes, ${after} after ${made}`);
  expect(after - before).toBeLessThan(3 * 1024 * 1024);
  await page.getByText(/the last 2.000 kept/).waitFor();
  expect(await page.locator(".row").count()).toBeLessThan(100);
}, 600_000);

test(
  "the memory of the page is flat while it is shown 100 changes a second",
  async () => {
    const { client } = cluster;
    await watch("?prefix=steady%2F");
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1_000;
    let made = 0;
    const makeUntil = async (second: number) => {
      while (seconds() < second) {
        // What is due by now, whatever the last batch took, so that the rate holds on a busy machine.
        const due = Math.max(1, Math.min(1_000, Math.floor(100 * seconds()) - made));
        await client.bulk(
          Array.from({ length: due }, (_, n) => op.put(`steady/${(made + n) % 500}`, { made: made + n })),
        );
        made += due;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      await shownSoFar(made);
    };
    // The ring is full by then.
    const warm = Math.min(30, SECONDS / 4);
    await makeUntil(warm);
    const before = await heapOf(page);
    await makeUntil(SECONDS);
    const after = await heapOf(page);
    const [s, rate] = [Math.round(seconds()), Math.round(made / seconds())];
    console.log(`heap: ${before} bytes after ${warm} s, ${after} after ${s} s at ${rate} changes a second`);
    expect(rate).toBeGreaterThan(90);
    expect(after).toBeLessThan(1.2 * before);
  },
  (SECONDS + 120) * 1_000,
);
