/** Each place as somebody uses it, on three nodes. Owns that nothing breaks the policy of the page or its errors on the way. */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterEach, beforeAll, expect, test } from "vitest";
import { findingsOf } from "./axe.js";
import { Cluster, coordinate, openBrowser, openWindow } from "./support.js";

let cluster: Cluster;
let browser: Browser;
let page: Page;
let faults: string[] = [];
/** A session that holds something of each kind. */
let ann = "";

beforeAll(async () => {
  cluster = await Cluster.start();
  browser = await openBrowser();
  const { client } = cluster;
  await client.put("orders/o1", { status: "new", total: 7 });
  await client.patch("orders/o1", { status: "paid" });
  for (const key of ["orders/o2", "orders/old/a", "orders/old/b", "stock/pears", "top"]) {
    await client.put(key, { status: "new" });
  }
  await client.collection("stock").put({
    fields: { status: { type: "varchar", max: 20 } },
    indexes: [{ fields: ["status"] }],
  });
  ann = await coordinate(client);
  ({ page, faults } = await openWindow(browser));
});

afterEach(() => {
  expect(faults.splice(0)).toEqual([]);
});

const open = async (address: string) => {
  await page.goto(cluster.console + address);
  await page.locator("h1").waitFor();
};
const editor = () => page.getByRole("textbox", { name: /^Value of/ });
const row = (name: string) => page.locator(".row").filter({ hasText: name });

test("the cluster shows its members, and hands leadership over once that is confirmed", async () => {
  await open("");
  await page.getByText(/3 of 3 voters heard of, one more may fail/).waitFor();
  expect(await page.locator("tbody tr").count()).toBe(3);
  const { leaderId } = await cluster.client.cluster.status();
  const button = page.getByRole("button", { name: "Make leader" }).first();
  await button.click();
  await page
    .getByRole("dialog")
    .getByText(/none is lost/)
    .waitFor();
  await page.keyboard.press("Escape");
  expect((await cluster.client.cluster.status()).leaderId).toBe(leaderId);
  await button.click();
  await page.getByRole("button", { name: /^Make node \d the leader$/ }).click();
  await page.locator(".notice").getByText(/leads/).first().waitFor();
  expect((await cluster.client.cluster.members()).leaderId).not.toBe(leaderId);
});

test("a change of the members that costs tolerance is refused with the reason", async () => {
  await open("cluster");
  await page.getByRole("button", { name: "Remove" }).first().click();
  const problem = page.getByRole("alert");
  await problem.getByText(/add a voter first/).waitFor();
  expect(await problem.textContent()).toMatch(/Nothing was changed.*change_refused/s);
});

test("the tree opens by keyboard, and an entry of it", async () => {
  await open("keys");
  await row("orders/").waitFor();
  await page.getByRole("tree").focus();
  await page.keyboard.press("ArrowRight");
  await row("o2").waitFor();
  expect(await page.locator(".row .key-name").allTextContents()).toEqual([
    "orders/",
    "o1",
    "o2",
    "old/",
    "services/",
    "stock/",
    "top",
  ]);
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await editor().waitFor();
  expect(page.url()).toMatch(/\/console\/entry\?key=orders%2Fo1$/);
  await page.goBack();
  await page.getByRole("tree").waitFor();
});

test("a search has an address that shows the same to others", async () => {
  await open("keys");
  await row("orders/").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("orders/");
  await page.keyboard.press("Tab");
  await page.keyboard.type("status eq paid");
  await page.keyboard.press("Enter");
  await page.getByText(/1 entry found, 4 looked at/).waitFor();
  await page.reload();
  await page.getByText(/1 entry found/).waitFor();
  await page.getByRole("button", { name: /Remove the condition/ }).click();
  await row("old/").waitFor();
  await page.getByLabel(/Of which this holds/).fill("status is paid");
  await page.keyboard.press("Enter");
  await page.getByText(/there is no operator `is`/).waitFor();
});

test("an edit says where it is no JSON, and is saved with all digits", async () => {
  await open("entry?key=orders%2Fo2");
  await editor().fill('{\n  "n": 12345678901234567890,\n  "x": 1.10,\n}');
  await page.getByText(/Line 4, column 1/).waitFor();
  expect(await page.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
  await editor().fill('{"n": 12345678901234567890, "x": 1.10}');
  await page.keyboard.press("Control+s");
  await page
    .locator(".notice")
    .getByText(/Saved: orders\/o2, version 2/)
    .waitFor();
  const raw = await fetch(`${cluster.endpoints[0]}/v1/kv/orders/o2?raw`);
  expect(await raw.text()).toBe('{"n":12345678901234567890,"x":1.10}');
});

test("an entry is created, and deleted once that is confirmed", async () => {
  await open("keys?prefix=new%2F");
  await page.getByRole("button", { name: "New entry" }).click();
  await page.getByLabel("Key", { exact: true }).fill("new/é b");
  await page.keyboard.press("Enter");
  await page.getByText(/There is no entry with this key/).waitFor();
  await editor().fill('"text"');
  await page.getByRole("button", { name: "Create" }).click();
  await page
    .locator(".notice")
    .getByText(/Saved: new\/é b, version 1/)
    .waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await page
    .getByRole("dialog")
    .getByText(/in version 1/)
    .waitFor();
  await page.getByRole("button", { name: "Delete the entry" }).click();
  await page
    .locator(".notice")
    .getByText(/Deleted: new\/é b/)
    .waitFor();
  expect(await cluster.client.get("new/é b")).toBeUndefined();
  await page.getByText(/There is no entry with this key/).waitFor();
});

test("what would be lost is asked for before a page is left", async () => {
  await open("entry?key=top");
  await editor().fill("[1]");
  await page.getByRole("link", { name: "History" }).click();
  await page
    .getByRole("dialog")
    .getByText(/not saved/)
    .waitFor();
  await page.keyboard.press("Escape");
  expect(await editor().inputValue()).toBe("[1]");
  await page.getByRole("button", { name: "Discard changes" }).click();
  await page.getByRole("link", { name: "History" }).click();
  await page.locator(".difference").waitFor();
});

test("history compares any two versions and restores one, also of a deleted entry", async () => {
  const { client } = cluster;
  await client.put("past", { n: 1 });
  await client.put("past", { n: 2 });
  await client.put("past", { n: 3 }, { ttlMs: 600_000 });
  await open("history?key=past");
  await page.locator(".diff.added").getByText('"n": 3').waitFor();
  await page
    .getByRole("radio", { name: /Compare from/ })
    .last()
    .check();
  await page.locator(".diff.removed").getByText('"n": 1').waitFor();
  expect(page.url()).toMatch(/from=\d+&to=\d+/);
  await page
    .getByRole("button", { name: /Restore revision/ })
    .last()
    .click();
  await page
    .getByRole("dialog")
    .getByText(/takes the place of version 3/)
    .waitFor();
  await page
    .getByRole("button", { name: /^Restore revision/ })
    .last()
    .click();
  await page
    .locator(".notice")
    .getByText(/Restored: past/)
    .waitFor();
  const restored = await client.get("past");
  expect([restored?.value, (restored?.ttlMs ?? 0) > 500_000]).toEqual([{ n: 1 }, true]);
  await client.remove("past");
  await open("history?key=past");
  await page.getByText("deleted", { exact: true }).waitFor();
  await page
    .getByRole("button", { name: /Restore revision/ })
    .last()
    .click();
  await page
    .getByRole("dialog")
    .getByText(/is created again/)
    .waitFor();
  await page
    .getByRole("button", { name: /^Restore revision/ })
    .last()
    .click();
  await page
    .locator(".notice")
    .getByText(/Restored: past/)
    .last()
    .waitFor();
  expect((await client.get("past"))?.value).toEqual({ n: 1 });
});

test("refused writes stand in the history, too", async () => {
  await cluster.client.insert("orders/o1", {}).catch(() => undefined);
  await open("history?key=orders%2Fo1");
  await page.getByText("already_exists").waitFor();
  expect(await page.locator("tbody tr").count()).toBe(3);
});

test("a change of somebody else shows by itself", async () => {
  await cluster.client.put("live", { n: 1 });
  await open("entry?key=live");
  await page.waitForFunction(() => document.querySelector("textarea")?.value.includes('"n": 1'));
  await cluster.client.put("live", { n: 2 });
  await page.waitForFunction(() => document.querySelector("textarea")?.value.includes('"n": 2'));
});

test("the request behind a page can be copied, and does the same in a shell", async () => {
  await open("entry?key=orders%2Fo1");
  await editor().waitFor();
  await page.keyboard.press("c");
  const drawer = page.getByRole("dialog");
  await drawer.getByRole("button", { name: /^Copy Read/ }).click();
  const code = await page.evaluate(() => navigator.clipboard.readText());
  const answer = JSON.parse(execFileSync("bash", ["-c", `${code} -s`], { encoding: "utf8" })) as {
    value: unknown;
  };
  expect(answer.value).toEqual({ status: "paid", total: 7 });
  for (const [name, text] of [
    ["Command line", /quorate --endpoints .* get orders\/o1/],
    ["Python", /client\.get\("orders\/o1"\)/],
    ["TypeScript", /await client\.get\("orders\/o1"\)/],
  ] as const) {
    await drawer.getByText(name, { exact: true }).click();
    await drawer.locator("pre").getByText(text).waitFor();
  }
  await page.keyboard.press("Escape");
  await drawer.waitFor({ state: "detached" });
});

test("an entry is created to live for a while, and told to live for ever; it says who changed it", async () => {
  await open("entry?key=lives");
  await editor().fill("[1]");
  await page.getByLabel("Time to live").fill("soon");
  expect(await page.getByRole("button", { name: "Create" }).isDisabled()).toBe(true);
  await page.getByLabel("Time to live").fill("2h");
  await page.getByRole("button", { name: "Create" }).click();
  const facts = page.locator(".entry-facts");
  await facts.getByText(/[12] h left/).waitFor();
  await facts.getByText(/(just now|ago).*at revision/).waitFor();
  await facts.getByRole("button", { name: "Set" }).click();
  await page.getByRole("button", { name: "Let it live for ever" }).click();
  await page
    .locator(".notice")
    .getByText(/lives lives for ever/)
    .waitFor();
  await facts.getByText("for ever").waitFor();
  expect((await cluster.client.get("lives"))?.ttlMs).toBeUndefined();
});

test("bytes are taken from a file, replaced by one, and saved as one", async () => {
  await open("entry?key=files%2Fhi.bin");
  const upload = page.locator("input[type=file]");
  const file = (...bytes: number[]) => ({
    name: "hi",
    mimeType: "application/octet-stream",
    buffer: Buffer.from(bytes),
  });
  await upload.setInputFiles(file(0, 255));
  await page.locator("pre.bytes").getByText("00 ff").waitFor();
  await upload.setInputFiles(file(1, 2, 3));
  await page.getByRole("button", { name: "Replace the entry" }).click();
  await page.locator("pre.bytes").getByText("01 02 03").waitFor();
  expect((await cluster.client.get("files/hi.bin"))?.value).toEqual(Uint8Array.of(1, 2, 3));
  const coming = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const saved = await coming;
  expect(saved.suggestedFilename()).toBe("hi.bin");
  expect(readFileSync(await saved.path())).toEqual(Buffer.from([1, 2, 3]));
});

test("a save keeps when the entry expires, however often it is saved", async () => {
  await cluster.client.put("expires", { n: 1 }, { ttlMs: 600_000 });
  await open("entry?key=expires");
  await page.waitForFunction(() => document.querySelector("textarea")?.value.includes('"n": 1'));
  await editor().fill('{"n": 1.50}');
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page
    .locator(".notice")
    .getByText(/Saved: expires/)
    .waitFor();
  const { ttlMs = 0 } = (await cluster.client.get("expires")) ?? {};
  expect([ttlMs > 500_000, ttlMs < 600_000]).toEqual([true, true]);
  const raw = await fetch(`${cluster.endpoints[0]}/v1/kv/expires?raw`);
  expect(await raw.text()).toBe('{"n":1.50}');
});

test("collections say their rules and indexes", async () => {
  await open("collections");
  const line = page.locator("tbody tr").filter({ hasText: "stock" });
  await line.getByText("varchar, at most 20").waitFor();
  await line.getByRole("link", { name: "Find" }).click();
  await page.getByRole("heading", { name: "Find", exact: true }).waitFor();
});

test("the palette offers keys that there are", async () => {
  await open("cluster");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("orders/ol");
  await page.getByRole("option", { name: "Open the entry orders/old/b" }).click();
  await editor().waitFor();
  expect(page.url()).toMatch(/entry\?key=orders\/old\/b|entry\?key=orders%2Fold%2Fb/);
});

test("the palette and the list of keys open by keyboard", async () => {
  await open("cluster");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("orders/o1");
  await page.keyboard.press("Enter");
  await editor().waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Open the palette").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await page.getByRole("heading", { name: "Cluster", exact: true }).waitFor();
});

test("reading only switches off all that writes, until the tab is closed", async () => {
  await open("entry?key=top");
  await editor().waitFor();
  await page.getByRole("switch", { name: "Read only" }).check();
  for (const name of ["Save", "Format", "Delete"]) {
    expect(await page.getByRole("button", { name }).isDisabled()).toBe(true);
  }
  expect(await editor().isEditable()).toBe(false);
  await page.reload();
  await page.getByText("The console is switched to reading only.").waitFor();
  await open("cluster");
  await page.getByRole("button", { name: "Make leader" }).first().waitFor();
  expect(await page.getByRole("button", { name: "Make leader" }).first().isDisabled()).toBe(true);
  await page.getByRole("switch", { name: "Read only" }).uncheck();
});

test("the accounts that hold most of a resource are listed", async () => {
  await open("callers");
  await page.getByRole("link", { name: "Connections", exact: true }).click();
  const accounts = page.getByRole("table", { name: "Accounts that hold most: Connections" });
  // The page itself has some.
  await accounts
    .getByText(/address/)
    .first()
    .waitFor();
  expect(page.url()).toMatch(/\/console\/callers\?resource=connections$/);
  expect(await page.getByRole("table", { name: "Resources of the node" }).locator("tbody tr").count()).toBe(
    12,
  );
});

test("an address that is none says so", async () => {
  await open("nowhere");
  await page.getByText("There is no such place").waitFor();
});

test.each(["light", "dark"] as const)("axe finds nothing serious in %s", async (scheme) => {
  for (const width of [1280, 390]) {
    const { page, context } = await openWindow(browser, { scheme, width });
    for (const address of [
      "cluster",
      "keys",
      "keys?where=status%20eq%20new",
      "entry?key=top",
      "history?key=orders%2Fo1",
      "watch?prefix=orders%2F&where=status%20eq%20new",
      "locks?name=deploy",
      "locks?show=elections&name=primary",
      "locks?show=meetings&name=start",
      `sessions?session=${ann}`,
      "collections",
      "callers?resource=connections",
    ]) {
      await page.goto(cluster.console + address);
      await page.locator("h1").waitFor();
      await page.waitForFunction(() => document.querySelector(".loading, .pending") === null);
      expect(await findingsOf(page), `${address} at ${width}`).toEqual([]);
    }
    for (const key of ["?", "c", "Control+k"]) {
      await page.keyboard.press(key);
      await page.getByRole("dialog").waitFor();
      expect(await findingsOf(page), `after ${key} at ${width}`).toEqual([]);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await context.close();
  }
});

test("nothing scrolls sideways at 390 pixels", async () => {
  const { page, context } = await openWindow(browser, { width: 390, height: 844 });
  for (const address of [
    "cluster",
    "keys",
    "entry?key=top",
    "history?key=orders%2Fo1",
    "watch?prefix=orders%2F&where=status%20eq%20new",
    "locks?name=deploy",
    "locks?show=elections&name=primary",
    "locks?show=meetings&name=start",
    `sessions?session=${ann}`,
    "collections",
    "callers?resource=connections",
  ]) {
    await page.goto(cluster.console + address);
    await page.locator("h1").waitFor();
    await page.waitForFunction(() => document.querySelector(".loading, .pending") === null);
    const wide = await page.evaluate(() => {
      const main = document.querySelector("main");
      return [document.documentElement.scrollWidth, main?.scrollWidth ?? 0];
    });
    expect(wide, address).toEqual([390, 390]);
  }
  await page.getByRole("button", { name: "Places" }).click();
  await page.getByRole("dialog").getByRole("link", { name: "Keys" }).click();
  await page.getByRole("tree").waitFor();
  await context.close();
});
