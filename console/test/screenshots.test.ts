/**
 * Pictures of each place, in both themes and at both widths, for people to look at; those in `docs/console` are of here. Owns which there
 * are. QUORATE_SHOTS names where they go.
 */

import { mkdirSync } from "node:fs";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { type Shop, startShop } from "./shop.js";
import { openBrowser, openWindow } from "./support.js";

const DIRECTORY = process.env["QUORATE_SHOTS"];
const LOOKS = [
  { width: 1280, height: 800, scheme: "light" },
  { width: 1280, height: 800, scheme: "dark" },
  { width: 390, height: 844, scheme: "light" },
  { width: 390, height: 844, scheme: "dark" },
] as const;

/** A picture: its name, where it is taken, and what is done before. */
type Picture = readonly [name: string, address: string, act?: (page: Page) => Promise<void>];

const pictures = ({ session, since }: Shop): readonly Picture[] => [
  ["cluster", "cluster"],
  ["keys", "keys", openTree],
  ["keys-found", "keys?prefix=orders/&where=status%20eq%20%22paid%22"],
  ["entry", "entry?key=orders/2026-0147"],
  ["history", "history?key=orders/2026-0147", (page) => page.locator(".difference").waitFor()],
  ["watch", `watch?prefix=orders/&from=${since}`, openChange],
  ["locks", "locks?name=deploy"],
  ["locks-all", "locks"],
  ["locks-break", "locks?name=deploy", askToBreak],
  ["elections", "locks?show=elections&name=primary"],
  ["meetings", "locks?show=meetings&name=start"],
  ["sessions", `sessions?session=${session}`],
  ["tasks", "tasks?queue=mails&state=dead"],
  ["tasks-queues", "tasks"],
  ["tasks-one", "tasks?queue=mails&state=dead&id=welcome-1"],
  [
    "find",
    "find?match=all&prefix=orders/&where=status%20eq%20%22paid%22&where=total%20gte%2010&order=-total",
    (page) => page.locator(".row").first().waitFor(),
  ],
  ["find-update", "find?match=all&prefix=orders/&where=status%20eq%20%22new%22", tryUpdate],
  ["collections", "collections"],
  ["access", "access?view=rights&user=shop&permission=write&name=orders/2026-0147"],
  ["access-users", "access?view=users"],
  ["access-roles", "access?view=roles"],
  ["access-tokens", "access?view=tokens"],
  ["access-audit", "access?view=audit&key=orders/2026-0147"],
  ["copy", "history?key=orders/2026-0147", openCopy],
  ["palette", "keys", openPalette],
];

async function openTree(page: Page): Promise<void> {
  for (const name of ["stock/", "services/"]) {
    await page
      .locator(".row", { has: page.getByText(name, { exact: true }) })
      .first()
      .click();
  }
  await page.waitForFunction(() => !document.querySelector(".rows")?.textContent?.includes("Reading more"));
}

async function openChange(page: Page): Promise<void> {
  await page.locator(".row").filter({ hasText: "written" }).first().click();
  await page.locator(".difference").waitFor();
}

async function askToBreak(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^Break/ }).click();
  await page.locator("dialog[open]").waitFor();
}

async function tryUpdate(page: Page): Promise<void> {
  await page.locator(".row").first().waitFor();
  await page.keyboard.press("m");
  await page.getByLabel("Patch").fill('{\n  "status": "late",\n  "note": null\n}');
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByRole("list", { name: "Entries that match" }).waitFor();
}

async function openCopy(page: Page): Promise<void> {
  await page.locator(".difference").waitFor();
  await page.keyboard.press("c");
  await page.locator("dialog[open]").waitFor();
}

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.keyboard.type("orders/2026-0131");
}

describe.runIf(DIRECTORY !== undefined)("pictures", () => {
  let shop: Shop;
  beforeAll(async () => {
    mkdirSync(DIRECTORY ?? "", { recursive: true });
    shop = await startShop();
  });

  test.each(LOOKS)(
    "at $width in $scheme",
    async (look) => {
      const browser = await openBrowser();
      const { page, faults } = await openWindow(browser, look);
      await page.goto(shop.cluster.console);
      await page.getByLabel("Token").fill(shop.token);
      await page.getByRole("button", { name: "Sign in" }).click();
      for (const [name, address, act] of pictures(shop)) {
        await page.goto(shop.cluster.console + address);
        await page.locator("h1").waitFor();
        await page.waitForFunction(() => document.querySelector(".loading, .pending") === null);
        await act?.(page);
        await page.screenshot({ path: `${DIRECTORY}/${name}-${look.width}-${look.scheme}.png` });
      }
      expect(faults).toEqual([]);
    },
    180_000,
  );
});
