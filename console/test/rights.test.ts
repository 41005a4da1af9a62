/** A cluster that wants to know who asks: signing in, and what a token with few rights is shown. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { op } from "quorate";
import { afterEach, beforeAll, expect, test } from "vitest";
import { findingsOf } from "./axe.js";
import { atEnd, Cluster, openBrowser, openWindow } from "./support.js";

const ROOT = "0123456789abcdef0123456789abcdef0123456789abcdef";

let cluster: Cluster;
let browser: Browser;
let page: Page;
let faults: string[] = [];
let shop = "";

beforeAll(async () => {
  const home = mkdtempSync(join(tmpdir(), "quorate-console-"));
  atEnd(() => rmSync(home, { recursive: true }));
  const file = join(home, "root.token");
  writeFileSync(file, ROOT, { mode: 0o600 });
  cluster = await Cluster.start({ nodeArgs: ["--auth", "required", "--root-token-file", file], token: ROOT });
  const { client } = cluster;
  await client.access.setRole("orders", [{ permission: "read", prefix: "orders/" }]);
  await client.access.setUser("shop", ["orders"]);
  shop = (await client.access.createToken("shop")).token;
  await client.put("orders/o1", { n: 1 });
  await client.put("secret/s1", { n: 1 });
  browser = await openBrowser();
  ({ page, faults } = await openWindow(browser));
});

afterEach(() => {
  expect(faults.splice(0)).toEqual([]);
});

const signIn = async (token: string) => {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
};

test("nobody gets in without a token, and a wrong one is told so", async () => {
  await page.goto(`${cluster.console}keys?prefix=orders%2F`);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await findingsOf(page)).toEqual([]);
  await signIn("qt_0123456789abcdef_wrong");
  await page.getByText("The cluster does not know this token.").waitFor();
});

test("with a token the page goes on where it was, and the token is in no address", async () => {
  await signIn(shop);
  await page.locator(".row").getByText("o1").waitFor();
  expect(page.url()).toMatch(/keys\?prefix=orders%2F$/);
  await page.reload();
  await page.locator(".row").getByText("o1").waitFor();
  await page.keyboard.press("c");
  const drawer = page.getByRole("dialog");
  await drawer
    .getByText(/\$QUORATE_TOKEN/)
    .first()
    .waitFor();
  expect(await page.content()).not.toContain(shop);
  await page.keyboard.press("Escape");
});

test("what is not allowed is explained, with a way to what is", async () => {
  await page.goto(`${cluster.console}keys`);
  await page.getByText("The user shop may not do this").waitFor();
  expect(await page.getByRole("alert").textContent()).toMatch(/permission_denied/);
  expect(await findingsOf(page)).toEqual([]);
  await page.getByRole("button", { name: "orders/" }).click();
  await page.locator(".row").getByText("o1").click();
  const editor = page.getByRole("textbox", { name: /^Value of/ });
  await editor.fill('{"n": 2}');
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The user shop may not do this").waitFor();
  expect(await page.getByRole("alert").textContent()).toMatch(/Nothing was changed/);
  expect(await editor.inputValue()).toBe('{"n": 2}');
  await page.getByRole("button", { name: "Discard changes" }).click();
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(`${cluster.console}cluster`);
  await page.getByText(/leads/).first().waitFor();
  await page.getByText("The user shop may not do this").first().waitFor();
  // What is refused is asked for once, what is not all the time.
  const looks = () => asked.filter((path) => path === "/v1/cluster/status").length;
  const before = looks();
  await expect.poll(looks, { timeout: 15_000 }).toBeGreaterThan(before + 4);
  expect(asked.filter((path) => path === "/v1/cluster/members")).toHaveLength(1);
});

test("a watch that is not allowed is explained, with a way to one that is; so are sessions and locks", async () => {
  await page.goto(`${cluster.console}watch`);
  await page.getByText("The user shop may not do this").waitFor();
  await page.getByText("Stopped").waitFor();
  await page.getByRole("button", { name: "Watch orders/" }).click();
  await page.getByText("Live", { exact: true }).waitFor();
  await cluster.client.put("secret/s2", 1);
  await cluster.client.put("orders/o2", 1);
  await page.locator(".row").getByText("orders/o2").waitFor();
  expect(await page.locator(".row").count()).toBe(1);
  for (const place of ["sessions", "locks"]) {
    await page.goto(cluster.console + place);
    await page.getByText("The user shop may not do this").waitFor();
    expect(await page.locator(".row").count()).toBe(0);
  }
});

test("a level of more than a page is read on below a prefix that is allowed", async () => {
  const ops = Array.from({ length: 2_500 }, (_, n) =>
    op.put(`orders/many/k${String(n).padStart(4, "0")}`, n),
  );
  await cluster.client.bulk(ops);
  await page.goto(`${cluster.console}keys?prefix=orders%2Fmany%2F`);
  await page.locator(".row").first().waitFor();
  await page.getByRole("tree").focus();
  await expect
    .poll(
      async () => {
        await page.keyboard.press("End");
        return page.locator(".row").last().textContent();
      },
      { timeout: 15_000 },
    )
    .toContain("k2499");
});

test("nothing is shown that the token may not see", async () => {
  await page.goto(`${cluster.console}entry?key=secret%2Fs1`);
  await page.getByText("The user shop may not do this").waitFor();
  expect(await page.locator("textarea").count()).toBe(0);
});

test("a token that is taken away leads back to the form", async () => {
  await page.goto(`${cluster.console}keys?prefix=orders%2F`);
  await page.locator(".row").getByText("o1").waitFor();
  const [token] = (await cluster.client.access.tokens().all()).filter(({ user }) => user === "shop");
  await cluster.client.access.removeToken(token?.id ?? "");
  await page.getByText(/Your token is not valid any more/).waitFor({ timeout: 20_000 });
});

test("who signs out has to sign in again", async () => {
  await signIn(ROOT);
  await page.locator(".row").getByText("o1").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await page.evaluate(() => sessionStorage.getItem("quorate.token"))).toBeNull();
});
