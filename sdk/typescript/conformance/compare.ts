/** What a step expects, and variables in it. Owns the rules of comparison of the suite. */

import { fromBase64 } from "../src/base64.js";
import { stringifyJson } from "../src/json.js";
import { keyOfBytes } from "../src/keys.js";

/** Values by the names that steps gave them. */
export type Variables = Map<string, unknown>;

/** The value with each `{x}` in its strings replaced. A string that is nothing but `{x}` has the type of the variable. */
export function filled(value: unknown, variables: Variables): unknown {
  if (typeof value === "string") {
    return filledText(value, variables);
  }
  if (Array.isArray(value)) {
    return value.map((item) => filled(item, variables));
  }
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, filled(item, variables)]));
  }
  return value;
}

function filledText(name: string, variables: Variables): unknown {
  // A byte of a name that is no text.
  const text = name.replace(/\\x([0-9a-f]{2})/g, (_, digits: string) =>
    keyOfBytes(Uint8Array.of(Number.parseInt(digits, 16))),
  );
  const whole = text.match(/^\{(\w+)\}$/)?.[1];
  if (whole !== undefined) {
    return variable(whole, variables);
  }
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(variable(name, variables)));
}

function variable(name: string, variables: Variables): unknown {
  if (!variables.has(name)) {
    throw new Error(`there is no variable ${name}`);
  }
  return variables.get(name);
}

/** A field of the answer: `a.b` goes into an object, `a.0` into a list. */
export function field(answer: unknown, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>((value, step) => (value as Record<string, unknown> | null | undefined)?.[step], answer);
}

/** Where the answer is not as expected, in words; `undefined` where it is. Objects are partial, lists are whole. */
export function difference(expected: unknown, actual: unknown, path = ""): string | undefined {
  if (Array.isArray(expected)) {
    return listDifference(expected, actual, path);
  }
  if (typeof expected === "object" && expected !== null) {
    if (typeof actual !== "object" || actual === null) {
      return unlike(expected, actual, path);
    }
    return first(Object.entries(expected), ([name, value]) =>
      difference(value, named(actual as Record<string, unknown>, name), `${path}.${name}`),
    );
  }
  const isEqual = expected === null ? actual === null || actual === undefined : expected === actual;
  return isEqual ? undefined : unlike(expected, actual, path);
}

/** What a field holds. A key that is no text stands in base64 beside it. */
function named(of: Record<string, unknown>, name: string): unknown {
  const encoded = of[`${name}_base64`];
  return of[name] === undefined && name !== "value" && typeof encoded === "string"
    ? keyOfBytes(fromBase64(encoded))
    : of[name];
}

function listDifference(expected: readonly unknown[], actual: unknown, path: string): string | undefined {
  if (!Array.isArray(actual) || actual.length !== expected.length) {
    return unlike(expected, actual, path);
  }
  return first([...expected.entries()], ([at, value]) => difference(value, actual[at], `${path}.${at}`));
}

function first<T>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

function unlike(expected: unknown, actual: unknown, path: string): string {
  return `${path || "answer"} is ${stringifyJson(actual)}, not ${stringifyJson(expected)}`;
}

/** Where a field of the answer is not greater than it should be; both may be strings of digits. */
export function notGreater(bounds: Record<string, unknown>, actual: unknown): string | undefined {
  return first(Object.entries(bounds), ([path, bound]) => {
    const value = field(actual, path);
    const isGreater = value !== undefined && BigInt(String(value)) > BigInt(String(bound));
    return isGreater
      ? undefined
      : `${path} is ${JSON.stringify(value)}, not greater than ${JSON.stringify(bound)}`;
  });
}
