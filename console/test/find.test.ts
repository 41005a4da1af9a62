/** The place Find on three nodes: a search put together, its numbers, and all that match changed after a dry run. */

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
  const { client } = cluster;
  const states = ["new", "paid", "sent"];
  await client.bulk(
    Array.from({ length: 30 }, (_, n) =>
      op.put(`orders/o${String(n).padStart(2, "0")}`, {
        status: states[n % 3] ?? "",
        total: n,
        id: String(n),
      }),
    ),
  );
  await client.put("top", { status: "new" });
  ({ page, faults } = await openWindow(browser));
});

afterEach(() => {
  expect(faults.splice(0)).toEqual([]);
});

const open = async (address: string) => {
  await page.goto(cluster.console + address);
  await page.locator("h1").waitFor();
};
const keys = () => page.locator(".row .key-name").allTextContents();
const fact = (name: string | RegExp) =>
  page.locator(".found-head .facts > div").filter({ hasText: name }).locator("dd").textContent();
const drawer = () => page.getByRole("dialog", { name: /all that match/ });

test("a search is put together, is ordered, and has an address", async () => {
  await open("find");
  await page.getByText("Say what you look for").waitFor();
  await page.getByLabel("Keys that begin with").fill("orders/");
  await page.getByLabel("Field of comparison 1", { exact: true }).fill("status");
  await page.getByLabel("Value of comparison 1", { exact: true }).fill("new");
  await page.getByRole("button", { name: "Comparison", exact: true }).click();
  await page.getByLabel("Field of comparison 2", { exact: true }).fill("total");
  await page.getByLabel("Operator of comparison 2", { exact: true }).selectOption("gte");
  await page.getByLabel("Type of the value of comparison 2", { exact: true }).selectOption("number");
  await page.getByLabel("Value of comparison 2", { exact: true }).fill("many");
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("total: type a number.").waitFor();
  await page.getByLabel("Value of comparison 2", { exact: true }).fill("21");
  await page.getByLabel("In the order of").fill("-total");
  await page.keyboard.press("Enter");
  await page.locator(".row").first().waitFor();
  expect(await keys()).toEqual(["orders/o27", "orders/o24", "orders/o21"]);
  expect([await fact("Found"), await fact("Examined"), await fact("Index used")]).toEqual([
    "3",
    "30",
    "none",
  ]);
  expect(await fact(/^Took/)).toMatch(/^\d+ (ms|s)$/);
  await page.reload();
  await page.locator(".row").first().waitFor();
  expect(await keys()).toEqual(["orders/o27", "orders/o24", "orders/o21"]);
  expect(await page.getByLabel("Value of comparison 2", { exact: true }).inputValue()).toBe("21");
  await page.getByLabel("How many of the comparisons have to hold").selectOption("Any of these holds");
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("16 entries in all").waitFor();
  await page.locator(".rows").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("textbox", { name: "Value of orders/o29" }).waitFor();
});

test("a value has the type that it is given", async () => {
  await open("find?match=all&prefix=orders%2F&where=id%20eq%20%2217%22");
  await page.getByText("1 entry in all").waitFor();
  expect(await page.getByLabel("Type of the value of comparison 1", { exact: true }).inputValue()).toBe(
    "text",
  );
  await page.getByLabel("Type of the value of comparison 1", { exact: true }).selectOption("number");
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("Nothing matches").waitFor();
  await page.getByLabel("Operator of comparison 1", { exact: true }).selectOption("in");
  await page.getByLabel("Type of the value of comparison 1", { exact: true }).selectOption("list");
  await page.getByLabel("Value of comparison 1", { exact: true }).fill('"17", "18"');
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("2 entries in all").waitFor();
});

test("a collection is picked, and its index is used", async () => {
  await cluster.client
    .collection("users")
    .put({ fields: { email: { type: "varchar" } }, indexes: [["email"]] });
  await cluster.client.put("users/ann", { email: "ann@example.org" });
  await open("find");
  await page.getByRole("button", { name: "users/" }).click();
  await page.getByLabel("Field of comparison 1", { exact: true }).fill("email");
  await page.getByLabel("Value of comparison 1", { exact: true }).fill("ann@example.org");
  // The index is built in the background.
  await expect
    .poll(
      async () => {
        await page.getByRole("button", { name: "Find" }).click();
        await page.getByText("1 entry in all").waitFor();
        return fact("Index used");
      },
      { timeout: 20_000 },
    )
    .toBe("email");
});

test("pages go on by the cursor, and all are counted", async () => {
  await cluster.client.bulk(
    Array.from({ length: 1_000 }, (_, n) => op.put(`pages/p${String(n).padStart(4, "0")}`, { n })),
  );
  await open("find?match=all&prefix=pages%2F");
  await page.locator(".row").first().waitFor();
  expect(await fact("Found so far")).toBe("100");
  await page.getByRole("button", { name: "Count all" }).click();
  await page.getByText("1\u202f000 entries in all").waitFor();
  await page.getByRole("button", { name: "Next page" }).click();
  await page.waitForFunction(() => document.querySelector(".found-head dd")?.textContent === "200");
});

test("all that match are updated: first a dry run, then a question, then part by part", async () => {
  await open("find?match=all&prefix=orders%2F&where=status%20eq%20%22new%22");
  await page.getByText("10 entries in all").waitFor();
  await page.getByRole("button", { name: "Update all …" }).click();
  await drawer().getByLabel("Patch").fill('{"status": "late"');
  await drawer()
    .getByText(/^Line 1/)
    .waitFor();
  expect(await drawer().getByRole("button", { name: "Dry run" }).isDisabled()).toBe(true);
  await drawer().getByLabel("Patch").fill('{"status": "late", "n": 12345678901234567890}');
  await drawer().getByRole("button", { name: "Dry run" }).click();
  await drawer().getByText("10 entries would be updated.").waitFor();
  const which = drawer().getByRole("list", { name: "Entries that match" }).locator("li");
  await which.getByText("orders/o27").waitFor();
  expect(await which.count()).toBe(10);
  expect(await findingsOf(page)).toEqual([]);
  expect(
    (await cluster.client.count({ prefix: "orders/", where: { field: "status", op: "eq", value: "late" } }))
      .count,
  ).toBe(0);
  await drawer().getByRole("button", { name: "Update 10 entries" }).click();
  const question = page.getByRole("dialog", { name: "Update 10 entries?" });
  expect(await question.textContent()).toMatch(/orders\/, where status eq "new".*"late".*orders\/o00/s);
  await question.getByRole("button", { name: "Update 10 entries" }).click();
  await drawer().getByText("10 of 10 done").waitFor();
  await drawer().getByRole("button", { name: "Close", exact: true }).last().click();
  await page.getByText("Nothing matches").waitFor();
  expect((await cluster.client.get("orders/o27"))?.value).toMatchObject({
    status: "late",
    n: 12345678901234567890n,
  });
});

test("what cannot be changed is named before and after", async () => {
  await cluster.client.put("mixed/a", { n: 1 });
  await cluster.client.put("mixed/b", "no object");
  await open("find?match=all&prefix=mixed%2F");
  await page.getByText("2 entries in all").waitFor();
  await page.keyboard.press("m");
  await drawer().getByLabel("Patch").fill('[{"op": "inc", "path": "n", "value": 1}]');
  await drawer().getByRole("button", { name: "Dry run" }).click();
  await drawer().getByText("1 entry would be updated.").waitFor();
  await drawer()
    .getByRole("list", { name: /would be left/ })
    .getByText("mixed/b", { exact: true })
    .waitFor();
  await drawer().getByRole("button", { name: "Update 1 entry" }).click();
  await page
    .getByRole("dialog", { name: "Update 1 entry?" })
    .getByRole("button", { name: "Update 1 entry" })
    .click();
  await drawer().getByText("1 of 1 done, 1 not").waitFor();
  expect((await cluster.client.get("mixed/a"))?.value).toEqual({ n: 2 });
});

test("a deletion of very many goes through parts, and can be stopped between them", async () => {
  // The second part is held until the button was pressed.
  let isPressed = () => {};
  const pressed = new Promise<void>((resolve) => {
    isPressed = resolve;
  });
  await open("find?match=all&prefix=pages%2F");
  await page.locator(".row").first().waitFor();
  await page.keyboard.press("D");
  await drawer().getByRole("button", { name: "Dry run" }).click();
  await drawer().getByText("1\u202f000 entries would be deleted.").waitFor();
  let parts = 0;
  await page.route("**/delete_where", async (request) => {
    parts += 1;
    if (parts === 2) {
      await pressed;
    }
    await request.continue();
  });
  await cluster.client.bulk(Array.from({ length: 400 }, (_, n) => op.put(`pages/q${n}`, { n })));
  await drawer().getByRole("button", { name: "Delete 1\u202f000 entries" }).click();
  await page
    .getByRole("dialog", { name: /^Delete 1/ })
    .getByRole("button", { name: /^Delete 1/ })
    .click();
  await drawer().getByText("500 of 1\u202f000 done").waitFor();
  await drawer().getByRole("button", { name: "Stop" }).click();
  isPressed();
  await drawer().getByText("Stopped: 1\u202f000 of 1\u202f000 done").waitFor();
  await page.unroute("**/delete_where");
  expect((await cluster.client.count({ prefix: "pages/" })).count).toBe(400);
});

test("reading only leaves searches, and no change", async () => {
  await open("find?match=all&prefix=orders%2F");
  await page.getByText("30 entries in all").waitFor();
  await page.getByRole("switch", { name: "Read only" }).check();
  for (const name of ["Update all …", "Delete all …"]) {
    expect(await page.getByRole("button", { name }).isDisabled()).toBe(true);
  }
  await page.keyboard.press("m");
  expect(await drawer().count()).toBe(0);
  await page.getByRole("switch", { name: "Read only" }).uncheck();
});

test.each(["light", "dark"] as const)(
  "axe finds nothing serious in %s, and nothing scrolls sideways",
  async (scheme) => {
    for (const width of [1280, 390]) {
      const { page, context } = await openWindow(browser, { scheme, width });
      for (const address of [
        "find",
        "find?match=any&prefix=orders%2F&where=status%20eq%20%22late%22&where=total%20in%20%5B1%2C2%5D",
      ]) {
        await page.goto(cluster.console + address);
        await page.locator("h1").waitFor();
        await page.locator(".empty, .row").first().waitFor();
        expect(await findingsOf(page), `${address} at ${width}`).toEqual([]);
        const wide = await page.evaluate(() => document.querySelector("main")?.scrollWidth ?? 0);
        expect(wide, `${address} at ${width}`).toBeLessThanOrEqual(width);
      }
      await context.close();
    }
  },
);
