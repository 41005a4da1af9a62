/**
 * The one client of the page, and what it learns on the way.
 *
 * Owns the token (memory, or the storage of this tab; never a URL), the client, and the log of calls. All calls go to where the page
 * comes from: that node answers or forwards. Who is asked after a failover is therefore the node's business; that calls are made
 * again meanwhile, the client's.
 */

import { signal } from "@preact/signals";
import { Client } from "quorate";
import { parseAnswer } from "./json-text.js";

/** A call that was made, for people. */
export interface Made {
  readonly number: number;
  readonly method: string;
  readonly target: string;
  /** Status of the answer; `undefined` where there was none. */
  readonly status: number | undefined;
  readonly ms: number;
}

/** So many calls are remembered. */
const MADE_MAX = 50;
const TOKEN_ITEM = "quorate.token";

/** The last calls, the newest first. */
export const made = signal<readonly Made[]>([]);
/** The token of whoever signed in. */
const token = signal<string | undefined>(storedToken());

let count = 0;

function storedToken(): string | undefined {
  return sessionStorage.getItem(TOKEN_ITEM) ?? undefined;
}

/** Whether somebody signed in. */
export function hasToken(): boolean {
  return token.value !== undefined;
}

/** Shows this token from now on. `isKept`: until this tab is closed, also over a reload. */
export function useToken(value: string | undefined, isKept: boolean): void {
  token.value = value;
  // The calls of somebody else are nobody's business.
  made.value = [];
  if (value !== undefined && isKept) {
    sessionStorage.setItem(TOKEN_ITEM, value);
  } else {
    sessionStorage.removeItem(TOKEN_ITEM);
  }
}

/** Where the page comes from, which is where calls go to. */
export const origin = location.origin;

/** The client. */
export const client = new Client({
  endpoints: origin,
  // The page may ask no other origin.
  discoverMembers: false,
  token: () => token.peek(),
  parseJson: parseAnswer,
  fetch: send,
});

async function send(url: string, init: RequestInit): Promise<Response> {
  const started = performance.now();
  try {
    const response = await fetch(url, init);
    note(url, init, started, response.status);
    return response;
  } catch (error) {
    note(url, init, started, undefined);
    throw error;
  }
}

function note(url: string, init: RequestInit, started: number, status: number | undefined): void {
  count += 1;
  const ms = Math.round(performance.now() - started);
  const call = { number: count, method: init.method ?? "GET", target: url.slice(origin.length), status, ms };
  made.value = [call, ...made.peek()].slice(0, MADE_MAX);
}
