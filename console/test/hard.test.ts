/** What is hard: two who write at once, a leader that dies, values that are hostile or large, very many keys. */

import type { Browser, Page } from "playwright-core";
import { op } from "quorate";
import { afterEach, beforeAll, expect, test } from "vitest";
import { findingsOf } from "./axe.js";
import { Cluster, openBrowser, openWindow } from "./support.js";

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

const editorOf = (page: Page) => page.getByRole("textbox", { name: /^Value of/ });
const textOf = (page: Page) => page.evaluate(() => document.querySelector("textarea")?.value);
const entry = async (page: Page, key: string) => {
  await page.goto(`${cluster.console}entry?key=${encodeURIComponent(key)}`);
  await editorOf(page).waitFor();
};

test("two windows change one entry: the second sees both versions, and merges them", async () => {
  await cluster.client.put("shared", { status: "new", owner: "nobody", note: "x" });
  const other = await openWindow(browser);
  await entry(page, "shared");
  await entry(other.page, "shared");
  await editorOf(page).fill('{"status": "paid", "owner": "ann", "note": "x"}');
  await editorOf(other.page).fill('{"status": "new", "owner": "ben", "note": "y"}');
  await page.getByRole("button", { name: "Save" }).click();
  await page
    .locator(".notice")
    .getByText(/version 2/)
    .waitFor();
  await other.page.getByText(/Somebody changed it: it is at version 2/).waitFor();
  await other.page.getByRole("button", { name: "Save" }).click();
  await other.page.getByText("The entry has changed since you read it").waitFor();
  expect((await cluster.client.get("shared"))?.value).toEqual({ status: "paid", owner: "ann", note: "x" });
  await other.page.getByText("1 field was changed on both sides").waitFor();
  expect(await findingsOf(other.page)).toEqual([]);
  await other.page
    .getByRole("group", { name: /\/owner/ })
    .getByText("Yours")
    .click();
  await other.page.getByRole("button", { name: "Use merged" }).click();
  await other.page.getByRole("button", { name: "Save" }).click();
  await other.page
    .locator(".notice")
    .getByText(/version 3/)
    .waitFor();
  expect((await cluster.client.get("shared"))?.value).toEqual({ status: "paid", owner: "ben", note: "y" });
  expect(other.faults).toEqual([]);
  await other.context.close();
});

test("what was deleted meanwhile can be created again", async () => {
  await cluster.client.put("gone", { n: 1 });
  await entry(page, "gone");
  await editorOf(page).fill('{"n": 2}');
  await cluster.client.remove("gone");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The entry was deleted since you read it").waitFor();
  await page.getByRole("button", { name: "Create it again with my text" }).click();
  await page.getByRole("button", { name: "Create" }).click();
  await page
    .locator(".notice")
    .getByText(/Saved: gone, version 1/)
    .waitFor();
  expect((await cluster.client.get("gone"))?.value).toEqual({ n: 2 });
});

test("the leader dies while somebody edits: nothing is lost, and nothing is reloaded", async () => {
  await cluster.client.put("edited", { n: 1 });
  await entry(page, "edited");
  await page.evaluate(() => {
    (globalThis as unknown as { mark: string }).mark = "the same page";
  });
  await editorOf(page).fill('{"n": 2}');
  const { leader } = (await cluster.control("kill_leader")) as { leader: number };
  await page.getByRole("button", { name: "Save" }).click();
  await page
    .locator(".notice")
    .getByText(/Saved: edited/)
    .waitFor({ timeout: 30_000 });
  expect((await cluster.client.get("edited"))?.value).toEqual({ n: 2 });
  await page.locator(".pulse").getByText(`Node ${leader} leads`).waitFor({ timeout: 30_000 });
  // The page follows the entry on from there.
  await cluster.client.put("edited", { n: 3 });
  await page.waitForFunction(() => document.querySelector("textarea")?.value.includes('"n": 3'));
  await page.getByRole("link", { name: "Cluster", exact: true }).click();
  await page.getByText(/Not one more voter may fail/).waitFor({ timeout: 30_000 });
  expect(await page.evaluate(() => (globalThis as unknown as { mark?: string }).mark)).toBe("the same page");
  await cluster.control("restart");
  await page.getByText(/3 of 3 voters heard of, one more may fail/).waitFor({ timeout: 30_000 });
});

test("a stored value is text, whatever is in it", async () => {
  const hostile = '<img src=x onerror="document.title=1"><script>1</script>\u202egnp.exe\u0000\u2028';
  const key = `<b>${hostile}</b>`;
  await cluster.client.put(key, { [hostile]: hostile });
  await cluster.client.put(key, { [hostile]: [hostile] });
  for (const address of [
    "keys",
    "keys?where=%24exists%20eq%20true",
    `history?key=${encodeURIComponent(key)}`,
  ]) {
    await page.goto(cluster.console + address);
    await page.getByText("onerror").first().waitFor();
    const shown = await page.evaluate(() => document.querySelector("main")?.textContent ?? "");
    expect(shown, address).not.toMatch(/\u202e|\u2028/);
    expect(await page.locator("main img, main script, main b").count()).toBe(0);
  }
  await entry(page, key);
  expect(await textOf(page)).toContain("\\u202egnp.exe");
  await editorOf(page).press("End");
  await page.keyboard.type(" ");
  await page.getByRole("button", { name: "Save" }).click();
  await page
    .locator(".notice")
    .getByText(/version 3/)
    .waitFor();
  expect((await cluster.client.get(key))?.value).toEqual({ [hostile]: [hostile] });
  expect(await page.title()).not.toBe("1");
  await cluster.client.remove(key);
});

test("bytes are shown and can be deleted, not edited", async () => {
  await cluster.client.put("bytes", Uint8Array.of(0x00, 0x41, 0xff));
  await page.goto(`${cluster.console}entry?key=bytes`);
  await page.getByText(/000000 +00 41 ff +·A·/).waitFor();
  expect(await page.getByRole("button", { name: "Save" }).count()).toBe(0);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete the entry" }).click();
  await page
    .locator(".notice")
    .getByText(/Deleted: bytes/)
    .waitFor();
});

test("a value of 1.5 MiB is read, edited and saved", async () => {
  const list = Array.from({ length: 18_000 }, (_, n) => ({ n, text: "x".repeat(62) }));
  await cluster.client.put("large", list);
  const started = performance.now();
  await entry(page, "large");
  expect(performance.now() - started).toBeLessThan(5_000);
  const text = await textOf(page);
  expect(text?.length).toBeGreaterThan(1.5 * 1024 * 1024);
  await editorOf(page).press("Control+End");
  await page
    .locator(".gutter-line")
    .last()
    .getByText(/^7\d{4}$/)
    .waitFor();
  expect(await page.locator(".gutter-line").count()).toBeLessThan(100);
  await page.evaluate(() => {
    const field = document.querySelector("textarea");
    const at = field?.value.lastIndexOf("17999") ?? 0;
    field?.setSelectionRange(at, at + 5);
  });
  const typing = performance.now();
  await page.keyboard.type("-1");
  expect(performance.now() - typing).toBeLessThan(4_000);
  await page.getByRole("button", { name: "Save" }).click();
  await page
    .locator(".notice")
    .getByText(/Saved: large, version 2/)
    .waitFor();
  const stored = await cluster.client.get<{ n: number }[]>("large");
  expect(stored?.value.at(-1)?.n).toBe(-1);
  await page.goto(`${cluster.console}history?key=large`);
  await page.getByText("1 line added, 1 line removed").waitFor();
});

test("100,000 keys are scrolled without a hitch", async () => {
  const { client } = cluster;
  for (let part = 0; part < 10; part += 1) {
    const ops = Array.from({ length: 10_000 }, (_, n) =>
      op.put(`many/k${String(part * 10_000 + n).padStart(6, "0")}`, n),
    );
    await client.bulk(ops);
  }
  await page.goto(`${cluster.console}keys`);
  await page
    .getByText("100\u202f003 entries")
    .or(page.getByText(/100\u202f\d{3} entries/))
    .waitFor();
  await page.goto(`${cluster.console}keys?prefix=many%2F`);
  await page.locator(".row").first().waitFor();
  await page.evaluate(() => {
    const marks = globalThis as unknown as { longest: number };
    marks.longest = 0;
    let last = performance.now();
    const look = () => {
      const now = performance.now();
      marks.longest = Math.max(marks.longest, now - last);
      last = now;
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await page.getByRole("tree").focus();
  const isAtEnd = () =>
    page.evaluate(
      () => document.querySelector(".rows .row:last-child")?.textContent?.includes("k099999") === true,
    );
  const started = performance.now();
  while (!(await isAtEnd())) {
    await page.keyboard.press("End");
    expect(performance.now() - started).toBeLessThan(50_000);
  }
  expect(await page.locator(".row").count()).toBeLessThan(120);
  expect(await page.locator(".row.active").getAttribute("aria-setsize")).toBe("100000");
  const longest = await page.evaluate(() => (globalThis as unknown as { longest: number }).longest);
  expect(longest).toBeLessThan(250);
  await page.keyboard.press("Home");
  await page.locator(".row.active").getByText("k000000").waitFor();
});
