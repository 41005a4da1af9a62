/// <reference lib="esnext.disposable" preserve="true" />

/**
 * Time: the monotonic clock, pauses that can be given up, and what waits for one of two things.
 *
 * Owns that no timer and no callback stays behind when what it was for is over.
 */

/** Milliseconds on a clock that is never set back. */
export function now(): number {
  return performance.now();
}

/** By how much the wall clock is ahead of the monotonic one: by more once the machine was suspended, or its wall clock was set. */
export function wallAhead(): number {
  return Date.now() - performance.now();
}

/** Longer than this no timer of a runtime can be set. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Calls back after this time, at the latest that a timer can be set to. */
export function after(ms: number, call: () => void): { cancel(): void } {
  const timer = setTimeout(call, Math.min(Math.max(ms, 0), TIMER_MAX_MS));
  return { cancel: () => clearTimeout(timer) };
}

/** What is called back when a signal is aborted: one listener for all, since runtimes warn of a signal that has many. */
const listening = new WeakMap<AbortSignal, Set<() => void>>();

function listeners(signal: AbortSignal): Set<() => void> {
  const known = listening.get(signal);
  if (known !== undefined) {
    return known;
  }
  const calls = new Set<() => void>();
  listening.set(signal, calls);
  signal.addEventListener("abort", () => tell(calls), { once: true });
  return calls;
}

function tell(calls: Set<() => void>): void {
  const told = [...calls];
  calls.clear();
  for (const call of told) {
    call();
  }
}

/** Calls back once the signal is aborted, at once where it is already. */
export function onAbort(signal: AbortSignal | undefined, call: () => void): { cancel(): void } {
  if (signal === undefined) {
    return { cancel: () => {} };
  }
  if (signal.aborted) {
    call();
    return { cancel: () => {} };
  }
  const calls = listeners(signal);
  const entry = () => call();
  calls.add(entry);
  return { cancel: () => calls.delete(entry) };
}

/** Like {@link sleep}, for what goes on in the background: a program that has nothing else to do may end meanwhile. */
export async function rest(ms: number, signal: AbortSignal): Promise<void> {
  const over = deferred<void>();
  const timer = setTimeout(over.resolve, ms);
  // Browsers have numbers, and programs that do not end.
  (timer as { unref?: () => void }).unref?.();
  await orAborted(over.promise, signal).finally(() => clearTimeout(timer));
}

/** Waits so long, or rejects with the reason of the signal. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = after(ms, () => {
      listener.cancel();
      resolve();
    });
    const listener = onAbort(signal, () => {
      timer.cancel();
      reject(signal?.reason);
    });
  });
}

/** What the promise comes to, or a rejection with the reason of the signal, whichever is first. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) {
    return promise;
  }
  signal.throwIfAborted();
  return new Promise<T>((resolve, reject) => {
    const listener = onAbort(signal, () => reject(signal.reason));
    promise.then(resolve, reject).finally(() => listener.cancel());
  });
}

/** Waits for the promise, but not for longer than this. */
export async function atMost(promise: Promise<void>, ms: number): Promise<void> {
  const late = deferred<void>();
  const timer = after(ms, late.resolve);
  await Promise.race([promise, late.promise]).finally(() => timer.cancel());
}

/** A signal that is aborted when one of these is, and `release` for when nobody needs it any more. */
export function anySignal(...signals: (AbortSignal | undefined)[]): { signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const listeners = signals.map((signal) => onAbort(signal, () => controller.abort(signal?.reason)));
  return {
    signal: controller.signal,
    release: () => {
      for (const listener of listeners) {
        listener.cancel();
      }
    },
  };
}

/** A promise and what settles it. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

/** A promise to be settled from outside. */
export function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** `Symbol.asyncDispose`, also where the runtime has none yet. */
export const asyncDispose: typeof Symbol.asyncDispose = (Symbol.asyncDispose ??
  Symbol.for("Symbol.asyncDispose")) as typeof Symbol.asyncDispose;
