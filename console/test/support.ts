/**
 * A real cluster, the console in front of it, and a browser.
 *
 * Owns starting and stopping of all three, and of what else a file of tests starts. The cluster is `sdk/conformance/cluster.py`, which
 * can be hurt; the console is served by `scripts/serve.mjs`, which has the policy of a node and goes on with another node where one is
 * gone.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { Client } from "quorate";
import { afterAll } from "vitest";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));

/** What was started for the tests of the file, and how each ends. */
const endings: (() => unknown)[] = [];

afterAll(async () => {
  for (let end = endings.pop(); end !== undefined; end = endings.pop()) {
    await end();
  }
});

/** Ends something after the tests of the file, what began last first. (`afterAll` within a hook or a test is passed over.) */
export function atEnd(end: () => unknown): void {
  endings.push(end);
}

/** A program that says on its first line what others need to know of it. */
async function started(
  command: string,
  args: readonly string[],
): Promise<{ first: string; child: ChildProcess }> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const first = await new Promise<string>((resolve, reject) => {
    lines.once("line", resolve);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${command} ${args[0]} ended with ${code}`)));
  });
  return { first, child };
}

/** Its standard input ends, and so does it. */
async function ended(child: ChildProcess): Promise<void> {
  const over = new Promise((resolve) => child.once("exit", resolve));
  child.stdin?.end();
  await over;
}

/** A cluster and the console in front of it. */
export class Cluster {
  readonly endpoints: readonly string[];
  readonly console: string;
  readonly client: Client;
  readonly #control: string;
  readonly #children: readonly ChildProcess[];

  private constructor(
    endpoints: readonly string[],
    control: string,
    console: string,
    children: readonly ChildProcess[],
    token: string | undefined,
  ) {
    this.endpoints = endpoints;
    this.#control = control;
    this.console = console;
    this.#children = children;
    this.client = new Client({ endpoints, token });
  }

  /** Starts it; `nodeArgs` are further arguments of each node. Stopped after the tests of the file. */
  static async start(
    options: { nodes?: number; nodeArgs?: readonly string[]; token?: string } = {},
  ): Promise<Cluster> {
    const nodes = ["--nodes", String(options.nodes ?? 3)];
    const more = options.nodeArgs === undefined ? [] : ["--", ...options.nodeArgs];
    const cluster = await started("python3", [`${REPOSITORY}sdk/conformance/cluster.py`, ...nodes, ...more]);
    const { endpoints, control } = JSON.parse(cluster.first) as { endpoints: string[]; control: string };
    const serve = await started("node", [
      fileURLToPath(new URL("../scripts/serve.mjs", import.meta.url)),
      "--nodes",
      endpoints.join(","),
    ]);
    const one = new Cluster(endpoints, control, serve.first, [serve.child, cluster.child], options.token);
    atEnd(() => one.stop());
    return one;
  }

  /** Does one thing to the cluster: `kill_leader`, `restart`, … */
  async control(what: string, how: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.#control}/${what}`, { method: "POST", body: JSON.stringify(how) });
    const answer = (await response.json()) as Record<string, unknown>;
    if (!response.ok) {
      throw new Error(`${what}: ${JSON.stringify(answer)}`);
    }
    return answer;
  }

  /** Ends everything. */
  async stop(): Promise<void> {
    await this.client.close();
    for (const child of this.#children) {
      await ended(child);
    }
  }
}

/** Sessions as services may have them, with locks, an election, a barrier and a latch. Returns the one that holds something of each kind. */
export async function coordinate(client: Client): Promise<string> {
  const ann = await client.session({ owner: "deploy-1", ttlMs: 30_000, labels: { zone: "a" } });
  const ben = await client.session({ owner: "deploy-2", ttlMs: 30_000, labels: { zone: "b" } });
  const cid = await client.session({ owner: "worker-7", ttlMs: 60_000 });
  await ann.lock("deploy");
  await cid.lock("import/shop", { slots: 3 });
  await ann.lock("reports", { mode: "shared" });
  await cid.lock("reports", { mode: "shared" });
  await ann.campaign("primary", { value: { host: "10.0.0.7", port: 5432 } });
  await client.put("services/deploy-1", { host: "10.0.0.7" }, { session: ann });
  await client.latch("start").create(5);
  await client.latch("start").countDown(2);
  await client.tasks("mail").schedule({ payload: { to: "x" } });
  await client.tasks("mail").claim({ session: ann });
  // These wait for as long as the test runs.
  const waits = [
    ben.lock("deploy"),
    cid.lock("deploy"),
    ben.campaign("primary"),
    ann.barrier("start", 3).enter(),
  ];
  for (const wait of waits) {
    wait.catch(() => undefined);
  }
  await until(async () => (await client.lock("deploy").get()).waiterCount === 2);
  await until(async () => (await client.election("primary").get()).candidateCount === 1);
  await until(async () => (await client.barrier("start")).entered === 1);
  return ann.id;
}

/** Waits until something holds. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  const started = performance.now();
  while (!(await holds())) {
    if (performance.now() - started > 30_000) {
      throw new Error(`it does not hold: ${String(holds)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** A browser, closed after the tests of the file. */
export async function openBrowser(): Promise<Browser> {
  const program = process.env["QUORATE_CHROMIUM"];
  if (program === undefined) {
    throw new Error("QUORATE_CHROMIUM names no program; test/run finds one");
  }
  const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
  atEnd(() => browser.close());
  return browser;
}

/** How a page is shown. */
export interface Look {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: "light" | "dark";
  /** Whether it believes a certificate of anybody. */
  readonly ignoreHTTPSErrors?: boolean;
}

/** A new window. Errors of the page and breaches of its policy end up in `faults`. */
export async function openWindow(
  browser: Browser,
  { width = 1280, height = 800, scheme = "light", ignoreHTTPSErrors = false }: Look = {},
): Promise<{ page: Page; context: BrowserContext; faults: string[] }> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    ignoreHTTPSErrors,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    // What a node refuses is an answer, which the page shows; the browser notes it as an error all the same.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) {
      faults.push(message.text());
    }
  });
  return { page, context, faults };
}
