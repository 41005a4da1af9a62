/** The place Access and audit on a cluster that wants to know who asks: as root, and as somebody with few rights. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { Client } from "quorate";
import { afterEach, beforeAll, expect, test } from "vitest";
import { findingsOf } from "./axe.js";
import { atEnd, Cluster, openBrowser, openWindow } from "./support.js";

const ROOT = "0123456789abcdef0123456789abcdef0123456789abcdef";

let cluster: Cluster;
let browser: Browser;
let page: Page;
let faults: string[] = [];

beforeAll(async () => {
  const home = mkdtempSync(join(tmpdir(), "quorate-console-"));
  atEnd(() => rmSync(home, { recursive: true }));
  const file = join(home, "root.token");
  writeFileSync(file, ROOT, { mode: 0o600 });
  cluster = await Cluster.start({ nodeArgs: ["--auth", "required", "--root-token-file", file], token: ROOT });
  const { client } = cluster;
  await client.access.setRole("reads", [{ permission: "read", prefix: "orders/" }]);
  await client.access.setRole("writes", [{ permission: "write", prefix: "orders/new/" }]);
  await client.access.setUser("shop", ["reads", "writes"]);
  await client.put("orders/o1", { n: 1 });
  await client.insert("orders/o1", {}).catch(() => undefined);
  await client.tasks("mails").schedule({}, { id: "t1" });
  browser = await openBrowser();
  ({ page, faults } = await openWindow(browser));
});

afterEach(() => {
  expect(faults.splice(0)).toEqual([]);
});

const signIn = async (page: Page, token: string) => {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".app").waitFor();
};
const open = async (address: string) => {
  await page.goto(cluster.console + address);
  await page.locator("h1").waitFor();
};
const dialog = () => page.getByRole("dialog");
const notice = (text: RegExp) => page.locator(".notice").getByText(text).waitFor();
const row = (text: string) => page.locator("tbody tr").filter({ hasText: text });

test("root sees who it is", async () => {
  await open("access");
  await signIn(page, ROOT);
  await page.locator(".list").getByText("root").waitFor();
  await page.locator(".list").getByText("everything").waitFor();
});

test("a role, a user that has it and a token are made; the secret is shown once, and works", async () => {
  await open("access?view=roles");
  await row("reads").getByText("orders/").waitFor();
  await page.keyboard.press("n");
  await dialog().getByLabel("Name").fill("stock");
  await dialog().getByLabel("Permission of grant 1").selectOption("write");
  await dialog().getByLabel("Prefix of grant 1").fill("stock/");
  await dialog().getByRole("button", { name: "Grant", exact: true }).click();
  await dialog().getByLabel("Permission of grant 2").selectOption("lock");
  await dialog().getByLabel("Prefix of grant 2").fill("stock/");
  expect(await findingsOf(page)).toEqual([]);
  await dialog().getByRole("button", { name: "Make the role" }).click();
  await notice(/Set: the role stock/);
  await page.getByRole("link", { name: "Users" }).click();
  await row("shop").waitFor();
  await page.getByRole("button", { name: "New user" }).click();
  await dialog().getByRole("button", { name: "Make the user" }).click();
  await dialog().getByText("Name the user.").waitFor();
  await dialog().getByLabel("Name").fill("keeper");
  await dialog().getByLabel("stock").check();
  await dialog().getByRole("button", { name: "Make the user" }).click();
  await row("keeper").getByText("stock").waitFor();
  await row("keeper").getByRole("button", { name: "New token" }).click();
  await dialog()
    .getByLabel(/What it is for/)
    .fill("the scales");
  await dialog()
    .getByLabel(/It ends after/)
    .fill("soon");
  await dialog().getByRole("button", { name: "Make the token" }).click();
  await dialog().getByText("Say after how long").waitFor();
  await dialog()
    .getByLabel(/It ends after/)
    .fill("12h");
  await dialog().getByRole("button", { name: "Make the token" }).click();
  const secret = (await dialog().locator(".secret code").textContent()) ?? "";
  expect(secret).toMatch(/^qt_[0-9a-f]{16}_/);
  expect(await findingsOf(page)).toEqual([]);
  await dialog().getByRole("button", { name: /^Copy/ }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(secret);
  await dialog().getByRole("button", { name: "I have it" }).click();
  await page.keyboard.press("c");
  await dialog().waitFor();
  expect(await page.content()).not.toContain(secret);
  expect(page.url()).not.toContain(secret);
  await page.keyboard.press("Escape");
  const keeper = new Client({ endpoints: cluster.endpoints, token: secret });
  await keeper.put("stock/pears", 1);
  await page.getByRole("link", { name: "Tokens" }).click();
  await row("the scales").getByRole("button", { name: "Revoke" }).click();
  expect(await dialog().textContent()).toMatch(/of keeper \(the scales\)/);
  await dialog().getByRole("button", { name: "Revoke the token" }).click();
  await notice(/Revoked/);
  await expect(keeper.put("stock/pears", 2)).rejects.toMatchObject({ code: "unauthenticated" });
  await keeper.close();
});

test("grants and roles are changed, and hold at once", async () => {
  const [before] = [(await cluster.client.access.createToken("keeper")).token];
  const keeper = new Client({ endpoints: cluster.endpoints, token: before });
  await open("access?view=roles");
  await row("stock").getByRole("button", { name: "Grants" }).click();
  await dialog().getByRole("button", { name: "Remove grant 1" }).click();
  await dialog().getByRole("button", { name: "Set the grants" }).click();
  await notice(/Set: the role stock/);
  await expect(keeper.put("stock/pears", 3)).rejects.toMatchObject({ code: "permission_denied" });
  await open("access?view=users");
  await row("keeper").getByRole("button", { name: "Roles" }).click();
  await dialog().getByLabel("stock").uncheck();
  await dialog().getByRole("button", { name: "Set the roles" }).click();
  await row("keeper").getByText("it may do nothing").waitFor();
  await keeper.close();
});

test("a role that somebody has is not deleted; a user is, with its tokens", async () => {
  await open("access?view=roles");
  await row("writes").getByRole("button", { name: "Delete" }).click();
  await dialog().getByRole("button", { name: "Delete the role" }).click();
  await page.getByRole("alert").getByText("in_use").waitFor();
  await open("access?view=users");
  await row("keeper").getByRole("button", { name: "Delete" }).click();
  expect(await dialog().textContent()).toMatch(/all its tokens with it/);
  await dialog().getByRole("button", { name: "Delete the user" }).click();
  await notice(/Deleted: the user keeper/);
  expect((await cluster.client.access.tokens().all()).filter(({ user }) => user === "keeper")).toEqual([]);
});

test("may X write Y? is answered with the reason, and has an address", async () => {
  await open("access");
  await page.getByLabel("User").fill("shop");
  await page.getByLabel(/^On the key/).fill("orders/new/o9");
  await page.getByRole("button", { name: "Ask" }).click();
  const answer = page.locator(".verdict");
  await answer.getByText(/^Yes:/).waitFor();
  expect(await answer.textContent()).toMatch(
    /writeorders\/new\/ by the role writes.*the API answers no such question/,
  );
  expect(page.url()).toMatch(/view=rights&user=shop&permission=write&name=orders%2Fnew%2Fo9$/);
  await open("access?view=rights&user=shop&permission=write&name=orders%2Fo1");
  await answer.getByText(/^No:/).waitFor();
  expect(await answer.textContent()).toMatch(/It needs.*writeorders\/o1.*What comes near.*by the role reads/);
  expect(await findingsOf(page)).toEqual([]);
  await open("access?view=rights&user=nobody&permission=read&name=x");
  await page.getByText("There is no user").waitFor();
  await open("access?view=rights&user=root&permission=admin");
  await answer.getByText(/^Yes:/).waitFor();
});

test("the trail of a key shows who changed it, and who tried to", async () => {
  await open("access?view=audit");
  await page.getByLabel("Key").fill("orders/o1");
  await page.keyboard.press("Enter");
  await row("already_exists").getByText("root").waitFor();
  await page.getByText("1 change, 1 without effect").waitFor();
  await page.getByText("Changes", { exact: true }).click();
  await row("already_exists").waitFor({ state: "detached" });
  expect(await page.locator("tbody tr").count()).toBe(1);
  await open("access?view=audit&key=never");
  await page.getByText("Nobody changed this key").waitFor();
});

test("reading only switches off what changes rights", async () => {
  await open("access?view=users");
  await row("shop").waitFor();
  await page.getByRole("switch", { name: "Read only" }).check();
  for (const name of ["New user", "New token", "Roles", "Delete"]) {
    expect(await page.getByRole("button", { name, exact: true }).isDisabled(), name).toBe(true);
  }
  await page.keyboard.press("n");
  expect(await dialog().count()).toBe(0);
  await page.getByRole("switch", { name: "Read only" }).uncheck();
});

test("a token without rights sees what it may, and why not the rest", async () => {
  const { token } = await cluster.client.access.createToken("shop");
  const { page, context, faults } = await openWindow(browser);
  await page.goto(`${cluster.console}access`);
  await signIn(page, token);
  await page.locator(".list").getByText("orders/new/").waitFor();
  await page.getByLabel(/^On the key/).fill("stock/pears");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.locator(".verdict").getByText(/^No:/).waitFor();
  await page.getByLabel("User").fill("keeper");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByText("can ask for themselves only").waitFor();
  for (const view of ["users", "roles", "tokens"]) {
    await page.goto(`${cluster.console}access?view=${view}`);
    await page.getByText("The user shop may not do this").waitFor();
    await page.getByText("their roles have the permission").waitFor();
    expect(await page.locator("tbody tr").count()).toBe(0);
  }
  expect(await findingsOf(page)).toEqual([]);
  await page.goto(`${cluster.console}access?view=audit&key=secret`);
  await page.getByText("it needs read on `secret`").waitFor();
  await page.goto(`${cluster.console}tasks`);
  await page.getByText("A list of all queues needs the permission").waitFor();
  await page.getByLabel("Name of the queue").fill("mails");
  await page.keyboard.press("Enter");
  await page.getByText("it needs read on `mails`").waitFor();
  await page.goto(`${cluster.console}find`);
  await page.getByRole("button", { name: "orders/", exact: true }).click();
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("1 entry in all").waitFor();
  await page.getByRole("button", { name: "Delete all …" }).click();
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByText(/it needs write on/).waitFor();
  expect((await cluster.client.get("orders/o1"))?.value).toEqual({ n: 1 });
  expect(faults).toEqual([]);
  await context.close();
});

test.each(["light", "dark"] as const)(
  "axe finds nothing serious in %s, and nothing scrolls sideways",
  async (scheme) => {
    for (const width of [1280, 390]) {
      const { page, context } = await openWindow(browser, { scheme, width });
      await page.goto(cluster.console);
      await signIn(page, ROOT);
      for (const view of [
        "rights&user=shop&name=orders%2Fo1",
        "users",
        "roles",
        "tokens",
        "audit&key=orders%2Fo1",
      ]) {
        await page.goto(`${cluster.console}access?view=${view}`);
        await page.locator("tbody tr, .verdict").first().waitFor();
        expect(await findingsOf(page), `${view} at ${width}`).toEqual([]);
        const wide = await page.evaluate(() => document.querySelector("main")?.scrollWidth ?? 0);
        expect(wide, `${view} at ${width}`).toBeLessThanOrEqual(width);
      }
      await context.close();
    }
  },
);
