/** What tests share: the program of a node, and waiting for a condition. */

import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isQuorateError, type QuorateError } from "../src/index.js";
import { NODE_ENV, TestCluster, type TestClusterOptions } from "../src/node/testing.js";

/** The package, from where tests run. */
export const PACKAGE = fileURLToPath(new URL("../../", import.meta.url));

/** The program of a node: `QUORATE_NODE`, else the built one of this repository, else the one on the `PATH`. */
export function nodeProgram(): string {
  const built = fileURLToPath(new URL("../../../../target/debug/quorate-node", import.meta.url));
  return process.env[NODE_ENV] ?? (existsSync(built) ? built : "quorate-node");
}

/** A cluster of that program. */
export function startCluster(options: TestClusterOptions = {}): Promise<TestCluster> {
  return TestCluster.start({ program: nodeProgram(), ...options });
}

/** A Unix socket before a node, which passes all bytes on. */
export class UnixProxy {
  readonly #server: Server;
  readonly #home: string;
  readonly #open = new Set<Socket>();

  private constructor(home: string, node: string) {
    this.#home = home;
    const { hostname, port } = new URL(`http://${node}`);
    this.#server = createServer((client) => {
      const there = connect({ host: hostname, port: Number(port) });
      for (const [one, other] of [
        [client, there],
        [there, client],
      ] as const) {
        this.#open.add(one);
        // What broke on one side ends the other.
        one.on("error", () => other.destroy());
        one.on("close", () => this.#open.delete(one));
        one.pipe(other);
      }
    });
  }

  /** Listens in a directory of its own. */
  static async start(node: string): Promise<UnixProxy> {
    const proxy = new UnixProxy(await mkdtemp(join(tmpdir(), "q")), node);
    proxy.#server.listen(proxy.#path);
    await once(proxy.#server, "listening");
    return proxy;
  }

  get endpoint(): string {
    return `unix:${this.#path}`;
  }

  get #path(): string {
    return join(this.#home, "node.sock");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const socket of this.#open) {
      socket.destroy();
    }
    await rm(this.#home, { recursive: true, force: true });
  }
}

/** Waits until this is so, at most for a while. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 10_000,
): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > end) {
      throw new Error(`not in ${withinMs} ms: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** What the promise rejects with; fails where it does not. */
export async function failure(work: Promise<unknown>): Promise<QuorateError> {
  const outcome = await work.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if ("value" in outcome) {
    throw new Error(`it should have failed, and came to ${JSON.stringify(outcome.value)}`);
  }
  if (!isQuorateError(outcome.error)) {
    throw outcome.error;
  }
  return outcome.error;
}

/** The first so many of what comes. */
export async function take<T>(items: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) {
    taken.push(item);
    if (taken.length >= count) {
      break;
    }
  }
  return taken;
}
