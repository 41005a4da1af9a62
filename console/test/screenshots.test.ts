/** Pictures of each place, in both themes and at both widths. Owns what is in them. QUORATE_SHOTS names where they go. */

import { mkdirSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { Cluster, coordinate, openBrowser, openWindow } from "./support.js";

const DIRECTORY = process.env["QUORATE_SHOTS"];
const PLACES = [
  ["cluster", "cluster"],
  ["keys", "keys"],
  ["keys-found", "keys?prefix=orders/&where=status%20eq%20%22paid%22"],
  ["entry", "entry?key=orders/o1"],
  ["tasks", "tasks"],
  ["tasks-queue", "tasks?queue=mails&state=dead"],
  ["tasks-one", "tasks?queue=mails&state=dead&id=welcome-1"],
  [
    "find",
    "find?match=all&prefix=orders/&where=status%20eq%20%22paid%22&where=total%20gte%2010&order=-total",
  ],
  ["access", "access?view=rights&user=shop&permission=write&name=orders/o1"],
  ["access-users", "access?view=users"],
  ["access-roles", "access?view=roles"],
  ["access-tokens", "access?view=tokens"],
  ["access-audit", "access?view=audit&key=orders/o1"],
  ["history", "history?key=orders/o1"],
  ["watch", "watch?prefix=orders/&from=2"],
  ["watch-change", "watch?prefix=orders/&from=2"],
  ["locks", "locks"],
  ["lock", "locks?name=deploy"],
  ["lock-break", "locks?name=deploy"],
  ["elections", "locks?show=elections&name=primary"],
  ["meetings", "locks?show=meetings&name=start"],
  ["sessions", "sessions"],
  ["session", "sessions?session=ANN"],
] as const;
const LOOKS = [
  { width: 1280, height: 800, scheme: "light" },
  { width: 1280, height: 800, scheme: "dark" },
  { width: 390, height: 844, scheme: "light" },
  { width: 390, height: 844, scheme: "dark" },
] as const;

describe.runIf(DIRECTORY !== undefined)("pictures", () => {
  let cluster: Cluster;
  let ann = "";
  beforeAll(async () => {
    mkdirSync(DIRECTORY ?? "", { recursive: true });
    cluster = await Cluster.start();
    await fill(cluster);
    ann = await coordinate(cluster.client);
  });

  test.each(LOOKS)("at $width in $scheme", async (look) => {
    const browser = await openBrowser();
    const { page, faults } = await openWindow(browser, look);
    for (const [name, address] of PLACES) {
      await page.goto(cluster.console + address.replace("ANN", ann));
      await page.locator("h1").waitFor();
      await page.waitForFunction(() => document.querySelector(".loading, .pending") === null);
      if (name === "watch-change") {
        await page.locator(".row").filter({ hasText: "written" }).first().click();
        await page.locator(".difference").waitFor();
      } else if (name === "lock-break") {
        await page.getByRole("button", { name: /^Break/ }).click();
        await page.locator("dialog[open]").waitFor();
      } else if (name === "watch") {
        await page.locator(".row").first().waitFor();
      }
      await page.screenshot({ path: `${DIRECTORY}/${name}-${look.width}-${look.scheme}.png` });
    }
    await page.goto(`${cluster.console}find?match=all&prefix=orders/&where=status%20eq%20%22new%22`);
    await page.locator(".row").first().waitFor();
    await page.keyboard.press("m");
    await page.getByLabel("Patch").fill('{\n  "status": "late",\n  "note": null\n}');
    await page.getByRole("button", { name: "Dry run" }).click();
    await page.getByRole("list", { name: "Entries that match" }).waitFor();
    await page.screenshot({ path: `${DIRECTORY}/find-update-${look.width}-${look.scheme}.png` });
    await page.goto(`${cluster.console}history?key=orders/o1`);
    await page.locator(".difference").waitFor();
    await page.keyboard.press("c");
    await page.locator("dialog[open]").waitFor();
    await page.screenshot({ path: `${DIRECTORY}/copy-${look.width}-${look.scheme}.png` });
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("orders/o7");
    await page.screenshot({ path: `${DIRECTORY}/palette-${look.width}-${look.scheme}.png` });
    expect(faults).toEqual([]);
  });
});

/** Entries as a shop may have them. */
async function fill({ client }: Cluster): Promise<void> {
  const states = ["new", "paid", "sent", "returned"];
  for (let n = 0; n < 40; n += 1) {
    await client.put(`orders/o${n}`, {
      status: states[n % 4],
      total: n * 3.5,
      customer: { name: "Ann", city: "Ulm" },
    });
  }
  for (const key of [
    "stock/pears",
    "stock/plums",
    "stock/nuts/hazel",
    "services/web/1",
    "services/web/2",
    "version",
  ]) {
    await client.put(key, { left: 5 });
  }
  const lines = [
    { article: "pears", count: 2, price: 3.2 },
    { article: "plums", count: 1, price: 2 },
  ];
  await client.put("orders/o1", {
    status: "paid",
    total: 8.4,
    customer: { name: "Ann", city: "Ulm" },
    lines,
  });
  await client.patch("orders/o1", { status: "sent", parcel: "DE-4711", sent_at: "2026-11-20T10:12:00Z" });
  await client.insert("orders/o1", {}).catch(() => undefined);
  await fillTasks(client);
  await fillAccess(client);
}

/** Users and roles as a shop may have them. */
async function fillAccess({ access }: Cluster["client"]): Promise<void> {
  await access.setRole("orders", [
    { permission: "write", prefix: "orders/" },
    { permission: "lock", prefix: "orders/" },
    { permission: "read", prefix: "stock/" },
  ]);
  await access.setRole("reports", [{ permission: "read", prefix: "" }]);
  await access.setUser("shop", ["orders"]);
  await access.setUser("auditor", ["reports"]);
  await access.setUser("intern", []);
  await access.createToken("shop", { note: "the shop", expiresInMs: 90 * 86_400_000 });
  await access.createToken("auditor", { note: "monthly report" });
}

/** Queues as a shop may have them. */
async function fillTasks(client: Cluster["client"]): Promise<void> {
  const mails = client.tasks("mails");
  for (let n = 0; n < 6; n += 1) {
    await mails.schedule(
      { to: `customer-${n}@example.org`, template: "welcome" },
      { id: `welcome-${n}`, maxAttempts: 1 },
    );
  }
  const errors = [
    "550 no such mailbox",
    "421 service not available, closing the channel",
    "timed out after 30 s",
  ];
  for (const [at, task] of (await mails.claim({ limit: 3, worker: "mailer-1" })).entries()) {
    await task.fail({ error: errors[at] ?? "" });
  }
  await mails.claim({ limit: 1, worker: "mailer-2", leaseMs: 600_000 });
  await client
    .tasks("reports")
    .schedule({ kind: "daily" }, { id: "daily", cron: "0 3 * * *", zone: "Europe/Berlin" });
}
