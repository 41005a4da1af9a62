/** Locks, elections and sessions as somebody sees them, breaks them and ends them, on three nodes. */

import type { Browser, Page } from "playwright-core";
import type { Session } from "quorate";
import { afterEach, beforeAll, expect, test } from "vitest";
import { Cluster, openBrowser, openWindow, until } from "./support.js";

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

const open = async (address: string) => {
  await page.goto(cluster.console + address);
  await page.locator("h1").waitFor();
};
const row = (name: string) => page.locator(".row").filter({ hasText: name });
const session = (owner: string): Promise<Session> => cluster.client.session({ owner, ttlMs: 30_000 });
const panel = () => page.locator(".panel");

test("nothing held says so, and what to do", async () => {
  await open("locks");
  await page.getByText("Nobody holds a lock, or waits for one").waitFor();
  await page.getByRole("link", { name: "Elections", exact: true }).click();
  await page.getByText("Nobody leads, or stands in an election").waitFor();
});

test("a lock shows its holder and its queue, and breaking it passes it on", async () => {
  const { client } = cluster;
  const ann = await session("ann");
  const ben = await session("ben");
  await ann.lock("deploy");
  await client.put("services/ann", 1, { session: ann });
  const waiting = ben.lock("deploy");
  await until(async () => (await client.lock("deploy").get()).waiterCount === 1);
  await open("locks");
  await row("deploy").getByText("ann").waitFor();
  await row("deploy").getByText("1 waits").waitFor();
  await page.getByRole("listbox").focus();
  await page.keyboard.press("Enter");
  await panel().getByText("ben").waitFor();
  expect(page.url()).toMatch(/locks\?name=deploy$/);
  const token = (await client.lock("deploy").get()).holders[0]?.token;
  expect(await panel().textContent()).toContain(`fence ${token}`);

  await page.keyboard.press("x");
  const dialog = page.getByRole("dialog");
  await dialog.getByText(`ben (session ${ben.id}) is the next to get it`).waitFor();
  await dialog.getByText("services/ann").waitFor();
  expect(await dialog.textContent()).toMatch(new RegExp(`session ${ann.id} of ann ends at once`));
  await page.keyboard.press("Escape");
  expect((await client.lock("deploy").get()).holders[0]?.session).toBe(ann.id);

  await panel().getByRole("button", { name: "Break the lock of ann" }).click();
  await dialog.getByRole("button", { name: `Break the lock: end session ${ann.id}` }).click();
  await page
    .locator(".notice")
    .getByText(/The lock deploy was broken/)
    .waitFor();
  const lock = await waiting;
  expect((await client.lock("deploy").get()).holders[0]?.session).toBe(ben.id);
  await row("deploy").getByText("ben").waitFor();
  await panel().getByRole("button", { name: "Break the lock of ben" }).waitFor();
  expect(await client.get("services/ann")).toBeUndefined();
  await lock.release();
  await row("deploy").waitFor({ state: "detached" });
});

test("a semaphore shows all who hold it, and only one of them is ended", async () => {
  const { client } = cluster;
  const holders = [await session("s1"), await session("s2")];
  for (const holder of holders) {
    await holder.lock("pool", { slots: 3 });
  }
  await open("locks?name=pool");
  await panel().getByText("2 of 3 slots").waitFor();
  await panel().getByRole("button", { name: "Break the lock of s1" }).click();
  await page
    .getByRole("dialog")
    .getByText(/s2 still holds it/)
    .waitFor();
  await page.getByRole("button", { name: /^Break the lock: end/ }).click();
  await panel().getByText("1 of 3 slots").waitFor();
  expect((await client.lock("pool").get()).holders.map(({ owner }) => owner)).toEqual(["s2"]);
  await holders[1]?.end();
});

test("an election shows who leads and stands, and its leader can be ended", async () => {
  const one = await session("one");
  const two = await session("two");
  await one.campaign("primary", { value: { host: "10.0.0.7", n: 12345678901234567890n } });
  const standing = two.campaign("primary", { value: "second" });
  await until(async () => (await cluster.client.election("primary").get()).candidateCount === 1);
  await open("locks?show=elections");
  await row("primary").getByText("one").waitFor();
  await row("primary").click();
  await panel().getByText("12345678901234567890").waitFor();
  await panel().getByRole("button", { name: "End the leadership of one" }).click();
  await page
    .getByRole("dialog")
    .getByText(/two \(session \d+\) leads next/)
    .waitFor();
  await page.getByRole("button", { name: /^End the leadership: end session/ }).click();
  await panel().getByText('"second"').waitFor();
  await standing;
  await two.end();
});

test("barriers and latches are looked at by name", async () => {
  await cluster.client.latch("go").create(3);
  await cluster.client.latch("go").countDown(1);
  await open("locks?show=meetings");
  await page.getByLabel("Name of a barrier or latch").fill("go");
  await page.keyboard.press("Enter");
  await page.getByText("2 of 3 left").waitFor();
  await page.getByText("Nobody is at it.").waitFor();
  await open("locks?show=meetings&name=none");
  await page.getByText("There is none of this name.").waitFor();
});

test("a session shows what hangs on it, and its end takes that away", async () => {
  const { client } = cluster;
  const ann = await client.session({ owner: "shop-1", ttlMs: 60_000, labels: { zone: "a", value: "v" } });
  await client.put("services/shop-1", 1, { session: ann });
  await ann.lock("books");
  await client.tasks("mail").schedule({ payload: 1 });
  await client.tasks("mail").claim({ session: ann });
  await open("sessions");
  await row("shop-1").getByText("1 lock, 1 entry, 1 task").waitFor();
  await row("shop-1").getByText("value=v").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("zone=a");
  await page.getByRole("listbox").focus();
  expect(await page.locator(".row").count()).toBe(1);
  await page.keyboard.press("Enter");
  await panel().getByRole("link", { name: "services/shop-1" }).waitFor();
  await panel()
    .getByText(/^mail\//)
    .waitFor();
  expect(page.url()).toContain(`session=${ann.id}`);
  await page.keyboard.press("x");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("1 entry is deleted").waitFor();
  await dialog.getByText("1 lock is released").waitFor();
  await dialog.getByText("1 task is given back").waitFor();
  await dialog.getByRole("button", { name: `End session ${ann.id}` }).click();
  await page
    .locator(".notice")
    .getByText(/has ended, and with it 3 things/)
    .waitFor();
  await panel().getByText("It has ended").waitFor();
  await row("shop-1").waitFor({ state: "detached" });
  expect(await client.get("services/shop-1")).toBeUndefined();
  expect((await client.lock("books").get()).holderCount).toBe(0);
  expect((await client.tasks("mail").stats()).claimed).toBe(0);
});

test("the time left counts down, and a session that ends by itself vanishes", async () => {
  await cluster.client.createSession({ owner: "dying", ttlMs: 6_000 });
  await open("sessions");
  await row("dying").waitFor();
  const left = () => row("dying").locator("progress").getAttribute("value").then(Number);
  const first = await left();
  await until(async () => (await left()) < first);
  await row("dying").waitFor({ state: "detached" });
});

test("reading only ends nothing", async () => {
  const ann = await session("ann");
  await ann.lock("kept");
  await open(`sessions?session=${ann.id}`);
  await panel().getByRole("link", { name: "kept" }).waitFor();
  await page.getByRole("switch", { name: "Read only" }).check();
  expect(await panel().getByRole("button", { name: "End session" }).isDisabled()).toBe(true);
  await panel().getByRole("link", { name: "kept" }).click();
  const button = panel().getByRole("button", { name: "Break the lock of ann" });
  await button.waitFor();
  expect(await button.isDisabled()).toBe(true);
  await page.keyboard.press("x");
  expect(await page.getByRole("dialog").count()).toBe(0);
  await page.getByRole("switch", { name: "Read only" }).uncheck();
  await ann.end();
});

test("names of others are text, whatever is in them", async () => {
  const hostile = '<img src=x onerror="document.title=1">\u202eevil';
  const ann = await cluster.client.session({ owner: hostile, labels: { [hostile]: hostile } });
  await ann.lock(hostile);
  await ann.campaign(hostile, { value: hostile });
  await cluster.client.put(hostile, hostile, { session: ann });
  const name = encodeURIComponent(hostile);
  for (const address of [
    `locks?name=${name}`,
    `locks?show=elections&name=${name}`,
    `sessions?session=${ann.id}`,
    "watch?from=2",
  ]) {
    await open(address);
    await page.getByText("onerror").first().waitFor();
    if (address.startsWith("locks?n")) {
      await panel()
        .getByRole("button", { name: /^Break/ })
        .click();
      await page.getByRole("dialog").getByText("evil").first().waitFor();
    }
    const shown = await page.evaluate(() => document.body.textContent ?? "");
    expect(shown, address).not.toMatch(/\u202e/);
    expect(await page.locator("main img, dialog img").count()).toBe(0);
  }
  expect(await page.title()).not.toBe("1");
  await ann.end();
});
