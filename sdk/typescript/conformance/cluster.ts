/** The cluster of the suite: `cluster.py`, its endpoints, and its faults. Owns the process. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** How long the cluster may take until it serves. */
const SERVES_WITHIN_MS = 60_000;

/** A cluster that is hurt on purpose. */
export class SuiteCluster {
  readonly endpoints: readonly string[];
  readonly #control: string;
  readonly #process: ChildProcess;

  private constructor(process: ChildProcess, line: { endpoints: string[]; control: string }) {
    this.#process = process;
    this.endpoints = line.endpoints;
    this.#control = line.control;
  }

  /** Starts this program, and waits until the cluster serves. */
  static async start(program: string): Promise<SuiteCluster> {
    const child = spawn("python3", [program], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout });
    const ended = once(child, "exit").then(([code]) => {
      throw new Error(`${program} ended with ${code} before the cluster served`);
    });
    const signal = AbortSignal.timeout(SERVES_WITHIN_MS);
    const [line] = (await Promise.race([once(lines, "line", { signal }), ended])) as [string];
    ended.catch(() => {});
    return new SuiteCluster(child, JSON.parse(line) as { endpoints: string[]; control: string });
  }

  /** Hurts it, or mends it; what the control port answers. */
  async fault(name: string, args: object = {}): Promise<Record<string, unknown>> {
    const init = {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(args),
    };
    const response = await fetch(`${this.#control}/${name}`, init);
    const text = await response.text();
    if (!response.ok) {
      throw new Error(`the fault ${name}: ${response.status} ${text}`);
    }
    return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
  }

  /** Stops everything. */
  async stop(): Promise<void> {
    const exited = this.#process.exitCode === null ? once(this.#process, "exit") : Promise.resolve();
    this.#process.stdin?.end();
    await exited;
  }
}
