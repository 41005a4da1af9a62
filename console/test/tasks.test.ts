/** The place Tasks on three nodes: dead letters, many at once, one in full, a new one. */

import type { Browser, Page } from "playwright-core";
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

const open = async (address: string) => {
  await page.goto(cluster.console + address);
  // The place is there, and its keys with it.
  await page.getByRole("button", { name: "Schedule a task" }).waitFor();
};
const notice = (text: RegExp) => page.locator(".notice").getByText(text).waitFor();
const row = (id: string) => page.locator("tbody tr").filter({ hasText: id });

/** So many tasks that died of this. */
async function dead(queue: string, count: number, error: string): Promise<void> {
  const tasks = cluster.client.tasks(queue);
  await tasks.scheduleAll(
    Array.from({ length: count }, (_, n) => ({ id: `d${n}`, payload: { n, to: "ann" }, maxAttempts: 1 })),
  );
  for (let left = count; left > 0; ) {
    const claimed = await tasks.claim({ limit: 100, worker: "w1" });
    left -= claimed.length;
    await Promise.all(claimed.map((task) => task.fail({ error })));
  }
}

test("a dead letter shows why it died, and is requeued", async () => {
  await dead("letters", 1, "no such address\n  at line 7");
  await open("tasks");
  await page.getByRole("link", { name: "letters" }).click();
  await row("d0").getByText("no such address").waitFor();
  expect(page.url()).toMatch(/tasks\?queue=letters$/);
  await row("d0").getByRole("link", { name: "d0" }).click();
  expect(page.url()).toMatch(/queue=letters&state=dead&id=d0$/);
  const drawer = page.getByRole("dialog");
  await drawer.getByText("at line 7").waitFor();
  await drawer.getByText("1 of 1").waitFor();
  await drawer.getByText('"to": "ann"').waitFor();
  expect(await findingsOf(page)).toEqual([]);
  await drawer.getByRole("button", { name: "Requeue" }).click();
  await drawer.getByText(/due since/).waitFor();
  const task = await cluster.client.tasks("letters").get("d0");
  expect([task?.state, task?.attempts]).toEqual(["scheduled", 0]);
  await page.keyboard.press("Escape");
  await page.getByText("No task has used up its attempts.").waitFor();
});

test("those that are chosen by keyboard are requeued, and the others not", async () => {
  await dead("chosen", 5, "no");
  await open("tasks?queue=chosen&state=dead");
  await row("d3").waitFor();
  // They failed at the same time, in whichever order.
  const ids = await page.locator("tbody .row-name").allTextContents();
  expect([...ids].sort()).toEqual(["d0", "d1", "d2", "d3", "d4"]);
  await page.keyboard.press("j");
  await page.locator("tbody tr").first().locator("a:focus").waitFor();
  await page.keyboard.press("x");
  await page.getByText("1 chosen").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByText("2 chosen").waitFor();
  await page.getByRole("button", { name: "Requeue 2" }).click();
  const question = page.getByRole("dialog");
  await question.locator("li").first().waitFor();
  expect(await question.locator("li").allTextContents()).toEqual([ids[0], ids[2]]);
  await question.getByRole("button", { name: "Requeue 2 tasks" }).click();
  await page.getByText("2 of 2 done").waitFor();
  const states = await Promise.all(
    ids.map(async (id) => (await cluster.client.tasks("chosen").get(id))?.state),
  );
  expect(states).toEqual(["scheduled", "dead", "scheduled", "dead", "dead"]);
});

test("what failed among many is named, and the rest goes on", async () => {
  await dead("raced", 3, "no");
  await open("tasks?queue=raced&state=dead");
  await row("d2").waitFor();
  await page.keyboard.press("a");
  await page.getByRole("button", { name: "Cancel 3" }).click();
  await cluster.client.tasks("raced").cancel("d1");
  await page.getByRole("button", { name: "Cancel 3 tasks" }).click();
  await page.getByText("2 of 3 done, 1 not").waitFor();
  await page.locator(".work-failures").getByText("d1").waitFor();
  await page.getByText("No task has used up its attempts.").waitFor();
});

test("very many are requeued with a progress that can be stopped", async () => {
  await dead("many", 700, "no");
  await open("tasks?queue=many&state=dead");
  // The second step is held until the button was pressed.
  let isPressed = () => {};
  const pressed = new Promise<void>((resolve) => {
    isPressed = resolve;
  });
  let steps = 0;
  await page.route("**/requeue", async (request) => {
    steps += 1;
    if (steps === 2) {
      await pressed;
    }
    await request.continue();
  });
  await page.getByRole("button", { name: "Requeue all 700" }).click();
  await page.getByRole("button", { name: "Requeue all 700 dead tasks" }).click();
  await page.getByText("100 of 700 done").waitFor();
  await page.locator(".work").getByRole("button", { name: "Stop" }).click();
  isPressed();
  await page.getByText("Stopped: 200 of 700 done").waitFor();
  await page.unroute("**/requeue");
  const { dead: left, scheduled } = await cluster.client.tasks("many").stats();
  expect([left, scheduled]).toEqual([500, 200]);
  await page.getByRole("button", { name: `Requeue all ${left}` }).click();
  await page.getByRole("button", { name: `Requeue all ${left} dead tasks` }).click();
  await page.getByText(`${left} of ${left} done`).waitFor();
  expect((await cluster.client.tasks("many").stats()).dead).toBe(0);
});

test("each task stands where it waits: due, later, claimed by whom", async () => {
  const tasks = cluster.client.tasks("views");
  await tasks.schedule({}, { id: "first" });
  await tasks.claim({ worker: "worker-7", leaseMs: 60_000 });
  await tasks.schedule({}, { id: "second" });
  await tasks.schedule({}, { id: "third", delayMs: 3_600_000 });
  await tasks.schedule({}, { id: "nightly", cron: "0 3 * * *", zone: "Europe/Berlin" });
  await open("tasks?queue=views");
  await row("second")
    .getByText(/due since/)
    .waitFor();
  expect(await page.locator("tbody tr").count()).toBe(1);
  await page.keyboard.press("]");
  await row("third").getByText("due in 59 min").waitFor();
  await row("nightly").getByText("recurs").waitFor();
  await page.keyboard.press("]");
  await row("first").getByText("worker-7").waitFor();
  await row("first")
    .getByText(/for \d+ s more/)
    .waitFor();
  await page.reload();
  await row("first").waitFor();
});

test("an operator who has the token of the claim completes a task, and one with another is refused", async () => {
  const [task] = await cluster.client.tasks("views").claim({ worker: "w2" });
  await open(`tasks?queue=views&state=claimed&id=${task?.id}`);
  await page.getByLabel("Token of the claim").fill("1");
  await page.getByRole("button", { name: "Complete" }).click();
  await page.getByRole("alert").getByText("not_lock_holder").waitFor();
  await page.getByLabel("Token of the claim").fill(task?.token ?? "");
  await page.getByRole("button", { name: "Complete" }).click();
  await notice(/Completed: second/);
  expect((await cluster.client.tasks("views").get(task?.id ?? ""))?.state).toBe("done");
});

test("one is scheduled, with what is missing said before", async () => {
  await open("tasks");
  await page.keyboard.press("n");
  const form = page.getByRole("dialog");
  await form.getByLabel("Queue").fill("new/queue é");
  await form.getByLabel(/Payload/).fill('{"n": 12345678901234567890');
  await form.getByRole("button", { name: "Schedule" }).click();
  await form.getByText(/is no JSON/).waitFor();
  await form.getByLabel(/Payload/).fill('{"n": 12345678901234567890}');
  await form.getByLabel("Due").selectOption("In a while");
  await form.getByLabel(/^In/).fill("10m");
  await form.getByLabel(/^Id/).fill("t1");
  expect(await findingsOf(page)).toEqual([]);
  await form.getByRole("button", { name: "Schedule" }).click();
  await notice(/Scheduled: t1/);
  await row("t1").getByText("due in 9 min").waitFor();
  const task = await cluster.client.tasks("new/queue é").get("t1");
  expect(task?.payload).toEqual({ n: 12345678901234567890n });
});

test("a question that is not agreed to changes nothing, and the choice stays", async () => {
  await open("tasks?queue=chosen&state=dead");
  await page.locator("tbody").getByRole("checkbox").first().check();
  await page.getByRole("button", { name: "Cancel 1" }).click();
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("1 chosen").waitFor();
  expect((await cluster.client.tasks("chosen").stats()).dead).toBe(3);
});

test("what somebody stored is text, whatever is in it", async () => {
  const hostile = '<img src=x onerror="document.title=1"><script>1</script>\u202egnp.exe\u2028';
  const tasks = cluster.client.tasks(`<b>${hostile}`);
  await tasks.schedule({ [hostile]: [hostile] }, { id: hostile, maxAttempts: 1 });
  const [claimed] = await tasks.claim({ worker: hostile });
  await open("tasks");
  await page.getByRole("link", { name: /onerror/ }).click();
  await page.getByRole("link", { name: "Claimed" }).click();
  await row("onerror").waitFor();
  await claimed?.fail({ error: `${hostile}\n${hostile}` });
  await page.getByRole("link", { name: "Dead" }).click();
  await row("onerror").getByRole("link").click();
  await page.getByRole("dialog").getByText("Why it died").waitFor();
  const shown = await page.evaluate(() => document.body.textContent);
  expect(shown).not.toMatch(/\u202e|\u2028/);
  expect(await page.locator("main img, main b, dialog img, dialog b").count()).toBe(0);
  await page.getByRole("dialog").getByRole("button", { name: "Requeue" }).click();
  await page
    .locator(".notice")
    .getByText(/onerror/)
    .waitFor();
  expect(await page.locator(".notices").textContent()).not.toMatch(/\u202e|\u2028/);
  expect(await page.title()).not.toBe("1");
});

test("reading only switches off all of it", async () => {
  await dead("safe", 1, "no");
  await open("tasks?queue=safe&state=dead");
  await row("d0").waitFor();
  await page.getByRole("switch", { name: "Read only" }).check();
  for (const name of ["Schedule a task", "Requeue all 1"]) {
    expect(await page.getByRole("button", { name }).isDisabled()).toBe(true);
  }
  await page.getByRole("link", { name: "d0" }).click();
  expect(await page.getByRole("dialog").getByRole("button", { name: "Requeue" }).isDisabled()).toBe(true);
  await page.keyboard.press("Escape");
  await page.getByRole("switch", { name: "Read only" }).uncheck();
});

test.each(["light", "dark"] as const)(
  "axe finds nothing serious in %s, and nothing scrolls sideways",
  async (scheme) => {
    for (const width of [1280, 390]) {
      const { page, context } = await openWindow(browser, { scheme, width });
      for (const address of ["tasks", "tasks?queue=chosen&state=dead", "tasks?queue=views&state=claimed"]) {
        await page.goto(cluster.console + address);
        await page.locator("h1").waitFor();
        await page.locator("tbody tr").first().waitFor();
        expect(await findingsOf(page), `${address} at ${width}`).toEqual([]);
        const wide = await page.evaluate(() => document.querySelector("main")?.scrollWidth ?? 0);
        expect(wide, `${address} at ${width}`).toBeLessThanOrEqual(width);
      }
      await context.close();
    }
  },
);
