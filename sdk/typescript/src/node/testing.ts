/**
 * Real nodes for the tests of other programs.
 *
 * Owns processes, ports and directories. Talks to the nodes as any client does.
 *
 * ```ts
 * await using cluster = await TestCluster.start();
 * await cluster.client().put("greeting", "hello");
 * ```
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, type ClientOptions } from "../client.js";
import { asyncDispose, now, sleep } from "../timing.js";
import { Ports } from "./ports.js";

/** The environment variable that names the program of a node. */
export const NODE_ENV = "QUORATE_NODE";
/** How long nodes may take until they are ready. */
const READY_WITHIN_MS = 30_000;
/** Pause between two looks at nodes that start. */
const LOOK_EVERY_MS = 50;
/** How often new ports are tried when another program was faster. */
const PORT_TRIES = 5;
/** Lines of a log that an error shows. */
const LOG_LINES = 20;

/** What a cluster is to be. */
export interface TestClusterOptions {
  /** How many nodes; 1, the default, answers in a moment and keeps nothing, 3 can lose one. */
  readonly nodes?: number | undefined;
  /** The program; default: what `QUORATE_NODE` names, else `quorate-node` on the `PATH`. */
  readonly program?: string | undefined;
  /** Flags of each node on top of those that the cluster needs. */
  readonly flags?: readonly string[] | undefined;
  /** Whether those flags make the nodes speak TLS: they are then ready once they take connections. */
  readonly tls?: boolean | undefined;
}

/** Why there is no cluster to test with. */
export class TestClusterError extends Error {
  override name = "TestClusterError";
}

/** Processes that are not to outlive this one. */
const running = new Set<ChildProcess>();

function endAll(): void {
  for (const child of running) {
    child.kill("SIGKILL");
  }
}

/** Ends the process with this one, if it has not ended before. */
function ownedByUs(child: ChildProcess): void {
  if (running.size === 0) {
    process.on("exit", endAll);
  }
  running.add(child);
  child.on("exit", () => {
    running.delete(child);
    if (running.size === 0) {
      process.off("exit", endAll);
    }
  });
}

/** A node: its address, its command, and its process while it runs. */
class TestNode {
  readonly address: string;
  readonly log: string;
  readonly #program: string;
  readonly #flags: readonly string[];
  #child: ChildProcess | undefined;
  #fault: string | undefined;

  constructor(program: string, address: string, log: string, flags: readonly string[]) {
    this.#program = program;
    this.address = address;
    this.log = log;
    this.#flags = flags;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  start(): void {
    const child = spawn(this.#program, this.#flags, { stdio: ["ignore", "pipe", "pipe"] });
    ownedByUs(child);
    this.#fault = undefined;
    child.on("error", (error) => {
      running.delete(child);
      this.#fault = `cannot start ${this.#program} (${NODE_ENV} names another): ${error.message}`;
    });
    child.on("exit", (code, signal) => {
      this.#fault ??= `the node ended with ${signal ?? code}`;
    });
    const log = createWriteStream(this.log, { flags: "a" });
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    this.#child = child;
  }

  /** Throws where the process has ended by itself. */
  check(): void {
    if (this.#child !== undefined && this.#fault !== undefined) {
      throw new TestClusterError(`${this.#fault}\n${this.logEnd()}`);
    }
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (
      child === undefined ||
      child.pid === undefined ||
      child.exitCode !== null ||
      child.signalCode !== null
    ) {
      return;
    }
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }

  logEnd(): string {
    const text = existsSync(this.log) ? readFileSync(this.log, "utf8") : "";
    return text.split("\n").slice(-LOG_LINES).join("\n");
  }
}

/** A cluster of real nodes, ended with {@link stop} or `await using`. */
export class TestCluster {
  readonly #home: string;
  readonly #nodes: readonly TestNode[];
  /** No other test has these, even while a node is down. */
  readonly #ports: Ports;

  readonly #isReady: (address: string) => Promise<boolean>;

  private constructor(home: string, nodes: readonly TestNode[], ports: Ports, isTls: boolean) {
    this.#home = home;
    this.#nodes = nodes;
    this.#ports = ports;
    this.#isReady = isTls ? isConnected : isReady;
  }

  /** Starts the nodes, and waits until all would serve a linearizable read. */
  static async start(options: TestClusterOptions = {}): Promise<TestCluster> {
    for (let tries = 1; ; tries += 1) {
      const cluster = await TestCluster.#prepare(options);
      try {
        for (const node of cluster.#nodes) {
          node.start();
        }
        await cluster.#ready();
        return cluster;
      } catch (error) {
        await cluster.stop();
        // Another program took a port between our look and the node's.
        if (tries >= PORT_TRIES || !String(error).toLowerCase().includes("in use")) {
          throw error;
        }
      }
    }
  }

  /** The addresses of all nodes, `host:port`. */
  get endpoints(): string[] {
    return this.#nodes.map((node) => node.address);
  }

  /** A client of all nodes; close it before the cluster is stopped. */
  client(options: Omit<ClientOptions, "endpoints"> = {}): Client {
    return new Client({ ...options, endpoints: this.endpoints });
  }

  /** Ends a node at once, as a crash does; nodes are counted from 0. */
  async kill(node: number): Promise<void> {
    await this.#node(node).kill();
  }

  /** Starts a node again that was killed, with the data that it has; waits until all that run are ready. */
  async restart(node: number): Promise<void> {
    await this.#node(node).kill();
    this.#node(node).start();
    await this.#ready();
  }

  /** Ends all nodes, and removes their data. */
  async stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.kill()));
    await this.#ports.release();
    await rm(this.#home, { recursive: true, force: true, maxRetries: 3 });
  }

  async [asyncDispose](): Promise<void> {
    await this.stop();
  }

  static async #prepare(options: TestClusterOptions): Promise<TestCluster> {
    const count = options.nodes ?? 1;
    const program = options.program ?? process.env[NODE_ENV] ?? "quorate-node";
    const home = await mkdtemp(join(tmpdir(), "quorate-testing-"));
    const ports = await Ports.take(2 * count);
    const clients = ports.numbers.slice(0, count).map((port) => `127.0.0.1:${port}`);
    const peers = ports.numbers.slice(count).map((port) => `127.0.0.1:${port}`);
    const founders = peers.map((peer, node) => `${node + 1}=${peer}`).join(",");
    const nodes = clients.map((client, node) => {
      const flags = ["--client-listen", client, "--peer-listen", peers[node] ?? ""];
      if (count === 1) {
        flags.push("--dev");
      } else {
        flags.push(
          "--node-id",
          String(node + 1),
          "--join",
          founders,
          "--data-dir",
          join(home, `node-${node + 1}`),
        );
        flags.push("--ballast-bytes", "0", "--min-free-bytes", "0");
      }
      return new TestNode(program, client, join(home, `node-${node + 1}.log`), [
        ...flags,
        ...(options.flags ?? []),
      ]);
    });
    return new TestCluster(home, nodes, ports, options.tls ?? false);
  }

  async #ready(): Promise<void> {
    const until = now() + READY_WITHIN_MS;
    const running = this.#nodes.filter((node) => node.isRunning);
    for (;;) {
      for (const node of running) {
        node.check();
      }
      if ((await Promise.all(running.map((node) => this.#isReady(node.address)))).every((ready) => ready)) {
        return;
      }
      if (now() > until) {
        const logs = running.map((node) => node.logEnd()).join("\n");
        throw new TestClusterError(`the nodes are not ready after ${READY_WITHIN_MS} ms:\n${logs}`);
      }
      await sleep(LOOK_EVERY_MS);
    }
  }

  #node(node: number): TestNode {
    const found = this.#nodes[node];
    if (found === undefined) {
      throw new RangeError(`there are ${this.#nodes.length} nodes, no node ${node}`);
    }
    return found;
  }
}

/** Whether the node takes connections. */
function isConnected(address: string): Promise<boolean> {
  const [host, port] = address.split(":");
  return new Promise((resolve) => {
    const socket = createConnection({ host: host ?? "", port: Number(port) });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** Whether the node would serve a linearizable read. */
async function isReady(address: string): Promise<boolean> {
  try {
    const response = await fetch(`http://${address}/readyz`, { signal: AbortSignal.timeout(2_000) });
    await response.text();
    return response.ok;
  } catch {
    // It does not listen yet.
    return false;
  }
}
