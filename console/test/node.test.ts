/**
 * The console as a node serves it by itself, out of its program, with TLS and users: nothing stands between the browser and the node. What
 * the program has in it is the console of when it was built, which may be older than `dist/`.
 */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "quorate";
import { beforeAll, expect, test } from "vitest";
import { connect } from "../../sdk/typescript/src/node/index.js";
import { TestCluster } from "../../sdk/typescript/src/node/testing.js";
import { atEnd, openBrowser, openWindow } from "./support.js";

const NODE = process.env["QUORATE_NODE"] ?? "quorate-node";
const ROOT = "0123456789abcdef0123456789abcdef0123456789abcdef";

let origin = "";
let client: Client;
let shop = "";

beforeAll(async () => {
  const home = mkdtempSync(join(tmpdir(), "quorate-console-"));
  atEnd(() => rmSync(home, { recursive: true }));
  execFileSync(NODE, ["pki", "init", home]);
  execFileSync(NODE, ["pki", "node", home, "--id", "1", "--host", "localhost,127.0.0.1"]);
  const root = join(home, "root.token");
  writeFileSync(root, ROOT, { mode: 0o600 });
  const tls = ["--tls-cert", join(home, "node-1.crt"), "--tls-key", join(home, "node-1.key")];
  const cluster = await TestCluster.start({
    program: NODE,
    flags: [...tls, "--auth", "required", "--root-token-file", root],
    tls: true,
  });
  atEnd(() => cluster.stop());
  origin = `https://${cluster.endpoints[0]}`;
  client = connect({ endpoints: origin, caFile: join(home, "ca.crt"), token: ROOT });
  atEnd(() => client.close());
  await client.put("orders/o1", { status: "new" });
  await client.access.setRole("orders", [{ permission: "write", prefix: "orders/" }]);
  await client.access.setUser("shop", ["orders"]);
  shop = (await client.access.createToken("shop")).token;
});

test("a node with TLS and users serves it: somebody signs in and edits an entry", async () => {
  const browser = await openBrowser();
  // The CA of the test is none that the browser knows.
  const { page, faults } = await openWindow(browser, { ignoreHTTPSErrors: true });
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  const answer = await page.goto(origin);
  expect(page.url()).toBe(`${origin}/console/`);
  expect(answer?.headers()["content-security-policy"]).toMatch(/default-src 'none'; script-src 'self'/);
  await page.goto(`${origin}/console/entry?key=orders%2Fo1`);
  await page.getByLabel("Token").fill(shop);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("textbox", { name: /^Value of/ }).fill('{"status": "paid"}');
  await page.getByRole("button", { name: "Save" }).click();
  await page
    .locator(".notice")
    .getByText(/version 2/)
    .waitFor();
  expect((await client.get("orders/o1"))?.value).toEqual({ status: "paid" });
  expect((await client.audit("orders/o1").page()).lines.map(({ principal }) => principal)).toEqual([
    "root",
    "shop",
  ]);
  expect(asked.filter((url) => !url.startsWith(`${origin}/`) || url.includes(shop))).toEqual([]);
  const paints: number[] = [];
  for (let load = 0; load < 5; load += 1) {
    await page.goto(`${origin}/console/entry?key=orders%2Fo1`);
    await page.getByRole("textbox", { name: /^Value of/ }).waitFor();
    paints.push(await page.evaluate(firstPaintMs));
  }
  console.log(`first paint: ${paints.map(Math.round).join(", ")} ms`);
  // The others may have had to wait for the machine.
  expect(Math.min(...paints)).toBeLessThan(300);
  expect(faults).toEqual([]);
});

/** When the page first showed something, behind the navigation to it. */
function firstPaintMs(): number {
  return performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.POSITIVE_INFINITY;
}
