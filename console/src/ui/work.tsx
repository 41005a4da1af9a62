/**
 * What takes long and goes step by step: how far it is, a button that stops it, and what it came to.
 *
 * Owns that a step that was begun is finished before it stops, and that leaving the page is asked for meanwhile.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type { QuorateError } from "quorate";
import { asError } from "../api/errors.js";
import { guardLeaving } from "../state/route.js";
import { shownText } from "../text/named.js";
import { counted, grouped } from "../text/words.js";
import { confirm } from "./confirm.js";
import { KeyName, Said } from "./key-name.js";
import { Problem } from "./problem.js";

/** So many failures are shown. */
const FAILURES_SHOWN = 20;

/** Something that failed on the way. */
export interface Failure {
  readonly name: string;
  /** Why. */
  readonly detail: string;
}

/** What one step came to. */
export interface Step {
  /** So many more are done. */
  readonly done: number;
  readonly failures?: readonly Failure[];
}

/** A work, and how far it is. */
export interface Work {
  /** What is done: `Requeue 12 tasks`. */
  readonly what: string;
  /** How many there are; `undefined` where that is what is found out. */
  readonly of: number | undefined;
  readonly done: number;
  readonly failures: readonly Failure[];
  readonly state: "running" | "stopping" | Ended;
  /** Why it could not go on. */
  readonly error: QuorateError | undefined;
}

/** How a work ended: at its end, stopped by somebody, or by an error. */
export type Ended = "over" | "stopped" | "failed";

/** The work of a page. */
export interface Worker {
  readonly work: Work | undefined;
  readonly isBusy: boolean;
  /** Goes through the steps. Resolves with how it ended. */
  start(what: string, of: number | undefined, steps: AsyncGenerator<Step>): Promise<Ended>;
  stop(): void;
  clear(): void;
}

/** One work at a time, for as long as the component is there. */
export function useWork(): Worker {
  const [work, setWork] = useState<Work | undefined>(undefined);
  const mayGoOn = useRef(true);
  const isBusy = work?.state === "running" || work?.state === "stopping";
  const stop = () => {
    mayGoOn.current = false;
    setWork((work) => work && { ...work, state: "stopping" });
  };
  useEffect(
    () => () => {
      mayGoOn.current = false;
    },
    [],
  );
  useEffect(() => (isBusy ? guardLeaving(askToLeave) : undefined), [isBusy]);
  const start = async (what: string, of: number | undefined, steps: AsyncGenerator<Step>): Promise<Ended> => {
    mayGoOn.current = true;
    let now: Work = { what, of, done: 0, failures: [], state: "running", error: undefined };
    setWork(now);
    try {
      for await (const step of steps) {
        const failures = [...now.failures, ...(step.failures ?? [])];
        now = { ...now, done: now.done + step.done, failures };
        if (!mayGoOn.current) {
          now = { ...now, state: "stopped" };
          break;
        }
        setWork(now);
      }
      const ended = now.state === "stopped" ? "stopped" : "over";
      setWork({ ...now, state: ended });
      return ended;
    } catch (error) {
      setWork({ ...now, state: "failed", error: asError(error) });
      return "failed";
    }
  };
  return { work, isBusy, start, stop, clear: () => setWork(undefined) };
}

function askToLeave(): Promise<boolean> {
  return confirm({
    title: "Leave while this goes on?",
    body: <p>What was begun is finished, and then it stops. What is done stays done.</p>,
    action: "Leave and stop",
  });
}

/** Shows a work. */
export function Progress({ worker }: { readonly worker: Worker }) {
  const { work, isBusy, stop, clear } = worker;
  if (work === undefined) {
    return null;
  }
  const { what, of, done, failures, state, error } = work;
  return (
    <section class="work" aria-label={what}>
      <div class="work-head">
        <strong>
          <Said text={what} />
        </strong>
        <span class="work-count" role="status">
          {sentence(state, done, of, failures.length)}
        </span>
        {isBusy ? (
          <button type="button" class="button small" disabled={state === "stopping"} onClick={stop}>
            {state === "stopping" ? "Stopping …" : "Stop"}
          </button>
        ) : (
          <button type="button" class="button quiet small" onClick={clear}>
            Close
          </button>
        )}
      </div>
      <progress
        value={of === undefined && isBusy ? undefined : done + failures.length}
        max={Math.max(1, of ?? done + failures.length)}
        aria-label={`${what}: how far it is`}
      />
      {failures.length > 0 && (
        <ul class="work-failures">
          {failures.slice(0, FAILURES_SHOWN).map(({ name, detail }) => (
            <li key={name}>
              <KeyName name={name} /> <span class="hint">{shownText(detail)}</span>
            </li>
          ))}
          {failures.length > FAILURES_SHOWN && (
            <li class="hint">and {counted(failures.length - FAILURES_SHOWN, "more")}</li>
          )}
        </ul>
      )}
      {error !== undefined && <Problem error={error} />}
    </section>
  );
}

function sentence(state: Work["state"], done: number, of: number | undefined, failed: number): string {
  const whole = of === undefined ? "" : ` of ${grouped(of)}`;
  const much = `${grouped(done)}${whole} done${failed === 0 ? "" : `, ${grouped(failed)} not`}`;
  return state === "stopped" ? `Stopped: ${much}` : much;
}

/** Errors after which the rest can only fail, too. */
const ENDS_ALL: readonly string[] = [
  "permission_denied",
  "unauthenticated",
  "read_only",
  "timeout",
  "no_leader",
];

/** Does the same to each of these, one after the other. What fails is told, and the rest goes on. */
export async function* each(
  names: readonly string[],
  act: (name: string) => Promise<unknown>,
): AsyncGenerator<Step> {
  for (const name of names) {
    const failure = await tried(name, act);
    yield failure === undefined ? { done: 1 } : { done: 0, failures: [failure] };
  }
}

async function tried(name: string, act: (name: string) => Promise<unknown>): Promise<Failure | undefined> {
  try {
    await act(name);
    return undefined;
  } catch (caught) {
    const error = asError(caught);
    if (ENDS_ALL.includes(error.code)) {
      throw error;
    }
    return { name, detail: error.detail };
  }
}
