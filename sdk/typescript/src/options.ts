/**
 * What callers may say, looked at before anything is sent.
 *
 * Owns the rules that types cannot hold, or that nobody holds in JavaScript: what is no object of options is refused, since most options
 * narrow a call, and one that is not seen widens it.
 */

import { InvalidArgumentError } from "./errors.js";

/** Whether a value is an object as a literal makes it, of whichever realm. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) {
    return false;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** A value in words, for an error. */
export function shownValue(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "object":
      return value === null ? "null" : nameOf(value);
    case "function":
      return "a function";
    default:
      return Object.is(value, -0) ? "-0" : String(value);
  }
}

function nameOf(value: object): string {
  const made: unknown = (value as { constructor?: { name?: unknown } }).constructor?.name;
  const name = typeof made === "string" && made !== "" ? made : "Object";
  return `${/^[AEIO]/.test(name) ? "an" : "a"} ${name}`;
}

/** Refuses what is no object of options: a prefix, a signal or a lock in its place, say. */
export function checkOptions(options: unknown, example?: (given: string) => string): void {
  if (options === undefined || isPlain(options)) {
    return;
  }
  const hint = typeof options === "string" && example !== undefined ? `, such as ${example(options)}` : "";
  throw new InvalidArgumentError(`options are an object${hint}, and this is ${shownValue(options)}`);
}

/** The names of all options of a call. */
export type NamesOf<Options> = Readonly<Record<keyof Options, true>>;

/** {@link checkOptions} for a call that does more the less is said: refuses names that it does not know, too, and null. */
export function checkNarrowing<Options extends object>(
  options: Options,
  names: NamesOf<Options>,
  example: (given: string) => string = (given) => `{ prefix: ${JSON.stringify(given)} }`,
): void {
  checkOptions(options, example);
  const given = Object.entries(options ?? {});
  const nothing = given.find(([, value]) => value === null)?.[0];
  if (nothing !== undefined) {
    throw new InvalidArgumentError(`\`${nothing}\` is null: leave out what is not to be said`);
  }
  const unknown = given.find(([name]) => !Object.hasOwn(names, name))?.[0];
  if (unknown !== undefined) {
    throw new InvalidArgumentError(
      `there is no option \`${unknown}\` here; there are: ${Object.keys(names).sort().join(", ")}`,
    );
  }
}

/** The names of what every call takes. */
export const CALL_NAMES = { timeoutMs: true, signal: true } as const;
/** The names of what every write takes. */
export const REQUEST_NAMES = { ...CALL_NAMES, requestId: true } as const;

/**
 * A span of time as whole milliseconds, rounded up: what is shorter than one would be none at all. Refuses what is negative, and what is
 * no number.
 */
export function duration(name: string, ms: number | undefined): number | undefined {
  const checked = patienceOf(name, ms);
  if (checked === Number.POSITIVE_INFINITY) {
    throw refused(name, ms);
  }
  return checked;
}

/** {@link duration} that may be endless: for what is measured here. */
export function patienceOf(name: string, ms: number | undefined): number | undefined {
  if (ms === undefined) {
    return undefined;
  }
  if (typeof ms !== "number" || !(ms >= 0)) {
    throw refused(name, ms);
  }
  // Not -0, which JSON has, too.
  return Math.ceil(ms) + 0;
}

function refused(name: string, ms: unknown): InvalidArgumentError {
  return new InvalidArgumentError(
    `\`${name}\` is ${shownValue(ms)}: expected a number of milliseconds that is not negative`,
  );
}

/** The time to live of what is written. 0 is none. */
export function timeToLive(ms: number | undefined): number | undefined {
  const checked = duration("ttlMs", ms);
  if (checked === 0) {
    throw new InvalidArgumentError(
      "`ttlMs` is 0: leave it out for no expiry (`touch` with 0 takes one away), and remove what is to be gone at once",
    );
  }
  return checked;
}
