/**
 * Where the page is: a place and its parameters, as the address bar has them.
 *
 * Owns the address. What belongs to a URL that is shared (a prefix, a key, two revisions) is in the query; what belongs to one person
 * (theme, token) is not.
 */

import { computed, signal } from "@preact/signals";
import { parameterOf } from "../text/named.js";

/** All addresses of the console begin so. */
export const BASE = "/console/";

/** A place and its parameters. */
export interface Route {
  /** The first segment below {@link BASE}; empty for the start. */
  readonly place: string;
  readonly query: URLSearchParams;
}

/** Parameters of an address; those that are `undefined` or empty are left out, a list stands several times. */
export type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

const address = signal(location.pathname + location.search);

/** Where the page is now. */
export const route = computed<Route>(() => parseAddress(address.value));

/** What an address says. */
export function parseAddress(address: string): Route {
  const url = new URL(address, "http://console");
  const rest = url.pathname.startsWith(BASE) ? url.pathname.slice(BASE.length) : "";
  return { place: rest.split("/")[0] ?? "", query: url.searchParams };
}

/** The address of a place. */
export function addressOf(place: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of typeof value === "string" ? [value] : (value ?? [])) {
      if (one !== "") {
        params.append(name, parameterOf(name, one));
      }
    }
  }
  const text = params.toString().replace(/\+/g, "%20");
  return `${BASE}${place}${text && `?${text}`}`;
}

/** Asks before what is on the page gets lost. Says whether to leave it. */
type Guard = () => boolean | Promise<boolean>;
let guard: Guard | undefined;

/** Lets this be asked before another place is shown. Call the answer to take it back. */
export function guardLeaving(ask: Guard): () => void {
  const warn = (event: BeforeUnloadEvent) => event.preventDefault();
  guard = ask;
  addEventListener("beforeunload", warn);
  return () => {
    removeEventListener("beforeunload", warn);
    if (guard === ask) {
      guard = undefined;
    }
  };
}

/** Goes there. */
export async function go(to: string, how: "push" | "replace" = "push"): Promise<void> {
  if (to === address.peek() || (guard !== undefined && !(await guard()))) {
    return;
  }
  guard = undefined;
  history[how === "push" ? "pushState" : "replaceState"](null, "", to);
  address.value = to;
}

/** Sets parameters of the place that is shown. */
export function setQuery(query: Query, how: "push" | "replace" = "replace"): void {
  const to = addressOf(route.peek().place, query);
  if (to !== address.peek()) {
    history[how === "push" ? "pushState" : "replaceState"](null, "", to);
    address.value = to;
  }
}

addEventListener("popstate", () => {
  const to = location.pathname + location.search;
  const from = address.peek();
  const ask = guard;
  if (ask === undefined) {
    address.value = to;
    return;
  }
  // The browser has moved already: back to where the page is until the answer is known.
  history.pushState(null, "", from);
  void go(to);
});

addEventListener("click", (event) => {
  const link = (event.target as Element | null)?.closest?.("a");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || link.target !== "" || link.hasAttribute("download")) {
    return;
  }
  const url = new URL(link.href);
  if (url.origin === location.origin && url.pathname.startsWith(BASE)) {
    event.preventDefault();
    void go(url.pathname + url.search);
  }
});
