/** Keys in addresses. Owns their form there: one may be no text, which no address can hold, so they stand as keys are shown. */

import { keyOfShown, shownKey } from "quorate";

/** Parameters that name entries. */
const NAMES = new Set(["key", "prefix"]);

/** A parameter of an address as it stands there. */
export function parameterOf(name: string, value: string): string {
  return NAMES.has(name) ? shownKey(value) : value;
}

/** A key, or what keys begin with, in an address; `null` where there is none. */
export function nameIn(query: URLSearchParams, name: "key" | "prefix"): string | null {
  const shown = query.get(name);
  return shown === null ? null : keyOfShown(shown);
}
