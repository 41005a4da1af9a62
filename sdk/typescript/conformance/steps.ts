/** One file of the suite, performed step by step. Owns the order, the bounds of time, and what runs in the background. */

import { Client } from "../src/index.js";
import { type Context, call, Made, next, shownError, start, stop } from "./calls.js";
import type { SuiteCluster } from "./cluster.js";
import { difference, field, filled, notGreater, type Variables } from "./compare.js";
import { restoreProcess } from "./process.js";

const WITHIN_DEFAULT_MS = 15_000;
/** Pause between two looks of a step that is so eventually. */
const LOOK_EVERY_MS = 50;

/** A step, as it stands in a file. */
interface Step {
  readonly call?: string;
  readonly start?: string;
  readonly next?: string;
  readonly stop?: string;
  readonly fault?: string;
  readonly cancel?: string;
  readonly join?: string;
  readonly with?: Record<string, unknown>;
  readonly as?: string;
  readonly of?: string;
  readonly expect?: unknown;
  readonly greater?: Record<string, unknown>;
  readonly error?: Record<string, unknown>;
  readonly save?: Record<string, string>;
  readonly background?: boolean;
  readonly repeat?: number;
  readonly eventually?: boolean;
  readonly within_ms?: number;
}

/** A file. */
export interface SuiteFile {
  readonly name: string;
  readonly quick?: boolean;
  readonly needs?: readonly string[];
  /** From how many endpoints its client is made; from all if not given. */
  readonly endpoints?: number;
  readonly steps: readonly Step[];
}

const VERBS = ["call", "start", "next", "stop", "fault", "cancel", "join"] as const;
/** What this runner and its client can do of what a file may need. */
const CAPABILITIES = new Set(["cancel", "cancel_release", "suspend", "foreign", "stderr", "clock"]);
const STEP_KEYS = new Set<string>([
  ...VERBS,
  ...[
    "with",
    "as",
    "of",
    "expect",
    "greater",
    "error",
    "save",
    "background",
    "repeat",
    "eventually",
    "within_ms",
  ],
]);

/** What came of a call: its answer, or the error that it failed with. */
type Outcome = { readonly answer: unknown } | { readonly failure: unknown };

/** What the file needs and is not here. */
export function missing(file: SuiteFile): readonly string[] {
  return (file.needs ?? []).filter((need) => !CAPABILITIES.has(need));
}

/** A call in the background. */
interface Running {
  readonly outcome: Promise<Outcome>;
  readonly stop: AbortController;
}

/** Throws where the file says something that this runner does not know. */
export function check(file: SuiteFile): void {
  const unknown = Object.keys(file).filter(
    (key) => !["name", "quick", "needs", "endpoints", "steps"].includes(key),
  );
  const inSteps = file.steps.flatMap((step) => Object.keys(step).filter((key) => !STEP_KEYS.has(key)));
  const [key] = [...unknown, ...inSteps];
  if (key !== undefined) {
    throw new Error(`there is no key ${key}`);
  }
}

/** Performs all steps; throws `step n: why` where one is not as it should be. */
export async function perform(file: SuiteFile, cluster: SuiteCluster): Promise<void> {
  const run = new Run(cluster, file);
  try {
    for (const [at, step] of file.steps.entries()) {
      try {
        await run.step(step);
      } catch (error) {
        throw new Error(`step ${at + 1}: ${error instanceof Error ? error.message : String(error)}`, {
          cause: error,
        });
      }
    }
  } finally {
    await run.end();
  }
}

class Run {
  readonly #cluster: SuiteCluster;
  readonly #client: Client;
  readonly #made = new Made();
  readonly #variables: Variables;
  readonly #background = new Map<string, Running>();
  readonly #stop = new AbortController();

  constructor(cluster: SuiteCluster, file: SuiteFile) {
    this.#cluster = cluster;
    this.#client = new Client({ endpoints: cluster.endpoints.slice(0, file.endpoints) });
    this.#variables = new Map([["p", `ts${Math.random().toString(36).slice(2, 10)}`]]);
  }

  async end(): Promise<void> {
    this.#stop.abort();
    for (const made of [...this.#made.watches.values(), ...this.#made.mirrors.values()]) {
      made.close();
    }
    await this.#client.close();
    restoreProcess();
  }

  async step(step: Step): Promise<void> {
    for (let i = 1; i <= (step.background ? 1 : (step.repeat ?? 1)); i += 1) {
      this.#variables.set("i", i);
      await within(step.within_ms ?? WITHIN_DEFAULT_MS, this.#once(step));
    }
  }

  async #once(step: Step): Promise<void> {
    if (step.background) {
      this.#begin(step);
    } else if (step.eventually) {
      await this.#eventually(step);
    } else {
      this.#judge(step, await this.#outcome(step));
    }
  }

  #begin(step: Step): void {
    const stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, this.#stop.signal]);
    const perform = async (): Promise<Outcome> => {
      let outcome = await this.#outcome(step, 1, signal);
      for (let i = 2; i <= (step.repeat ?? 1) && "answer" in outcome; i += 1) {
        outcome = await this.#outcome(step, i, signal);
      }
      return outcome;
    };
    this.#background.set(step.as ?? "", { outcome: perform(), stop });
  }

  async #eventually(step: Step): Promise<void> {
    const until = performance.now() + (step.within_ms ?? WITHIN_DEFAULT_MS) - 2 * LOOK_EVERY_MS;
    for (;;) {
      try {
        this.#judge(step, await this.#outcome(step));
        return;
      } catch (error) {
        if (performance.now() > until) {
          throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    }
  }

  async #outcome(step: Step, i?: number, signal: AbortSignal = this.#stop.signal): Promise<Outcome> {
    const variables = i === undefined ? this.#variables : new Map([...this.#variables, ["i", i]]);
    if (step.join !== undefined) {
      return this.#running(step.join).outcome;
    }
    if (step.cancel !== undefined) {
      return this.#cancelled(step.cancel);
    }
    try {
      return { answer: await this.#done(step, filled(step.with ?? {}, variables) as object, signal) };
    } catch (failure) {
      return { failure };
    }
  }

  #running(name: string): Running {
    const running = this.#background.get(name);
    if (running === undefined) {
      throw new Error(`there is no call ${name} in the background`);
    }
    return running;
  }

  /** Breaks a call in the background off; whatever it returns is right. */
  async #cancelled(name: string): Promise<Outcome> {
    const running = this.#running(name);
    running.stop.abort();
    await running.outcome;
    return { answer: {} };
  }

  async #done(step: Step, args: object, signal: AbortSignal): Promise<unknown> {
    const context: Context = {
      client: this.#client,
      made: this.#made,
      of: step.of,
      as: step.as,
      signal,
    };
    if (step.call !== undefined) {
      return call(step.call, context, args);
    }
    if (step.fault !== undefined) {
      return this.#cluster.fault(step.fault, args);
    }
    if (step.next !== undefined) {
      return next(step.next, context);
    }
    if (step.start !== undefined) {
      return start(step.start, context, args);
    }
    return stop(step.stop ?? "", context);
  }

  /** Compares what came of a step with what it should be, and saves what it should. */
  #judge(step: Step, outcome: Outcome): void {
    const actual = this.#shown(step, outcome);
    const expected = filled(step.error ?? step.expect ?? {}, this.#variables);
    const greater = filled(step.greater ?? {}, this.#variables) as Record<string, unknown>;
    const why = difference(expected, actual ?? {}) ?? notGreater(greater, actual);
    if (why !== undefined) {
      throw new Error(why);
    }
    for (const [path, name] of Object.entries(step.save ?? {})) {
      this.#variables.set(name, field(actual, path));
    }
  }

  /** The answer, or where an error is expected that error. */
  #shown(step: Step, outcome: Outcome): unknown {
    if ("answer" in outcome) {
      if (step.error !== undefined) {
        throw new Error(`it should have failed, and answered ${JSON.stringify(outcome.answer)}`);
      }
      return outcome.answer;
    }
    const shown = step.error === undefined ? undefined : shownError(outcome.failure);
    if (shown === undefined) {
      throw outcome.failure;
    }
    return shown;
  }
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not in ${ms} ms`)), ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
