/**
 * Who the page is for: whom the cluster takes us for, and what that one may do.
 *
 * Owns the moment when somebody has to sign in. Every answer 401, whichever call it is of, leads there.
 */

import { signal } from "@preact/signals";
import { type Grant, isQuorateError, type Self } from "quorate";
import { readSelf } from "../api/cluster.js";
import { client, useToken } from "../api/connection.js";
import { behindPrefix } from "../text/named.js";

/** After a question that nobody answered. */
const ASK_AGAIN_MS = 2_000;

/** What is known of who asks. */
export type Identity =
  | { readonly kind: "asking" }
  | { readonly kind: "known"; readonly self: Self }
  | { readonly kind: "unknown"; readonly refused: boolean };

/** Who asks. */
export const identity = signal<Identity>({ kind: "asking" });

/** Asks the cluster who we are. */
export async function identify(): Promise<void> {
  try {
    const self = await readSelf().run(client, new AbortController().signal);
    identity.value = { kind: "known", self };
  } catch (error) {
    noticeRefusal(error);
    if (identity.peek().kind === "asking") {
      // No node answers for now, which the frame of the page says.
      setTimeout(() => void identify(), ASK_AGAIN_MS);
    }
  }
}

/** Takes note of an error that says that nobody knows who asks. */
export function noticeRefusal(error: unknown): void {
  if (isQuorateError(error, "unauthenticated")) {
    const wasSignedIn = identity.peek().kind === "known";
    identity.value = { kind: "unknown", refused: wasSignedIn };
  }
}

/** Signs in by a token. Throws where the cluster does not take it. */
export async function signIn(token: string, isKept: boolean): Promise<void> {
  useToken(token, isKept);
  try {
    const self = await readSelf().run(client, new AbortController().signal);
    identity.value = { kind: "known", self };
  } catch (error) {
    useToken(undefined, false);
    throw error;
  }
}

/** Forgets the token. */
export function signOut(): void {
  useToken(undefined, false);
  identity.value = { kind: "asking" };
  void identify();
}

/** The name of who is signed in; `undefined` where the cluster asks nobody. */
export function userName(): string | undefined {
  return identity.value.kind === "known" ? identity.value.self.user : undefined;
}

/** Whether all keys that begin so may be read. */
export function mayRead(prefix: string): boolean {
  const isAsked = userName() !== undefined;
  return !isAsked || readablePrefixes().some((root) => behindPrefix(prefix, root) !== undefined);
}

/** The prefixes whose keys may be read, the shortest first; those within another are left out. */
export function readablePrefixes(): string[] {
  const self = identity.value;
  const prefixes = self.kind === "known" ? self.self.grants.map((grant: Grant) => grant.prefix) : [];
  const sorted = [...new Set(prefixes)].sort(
    (one, other) => one.length - other.length || (one < other ? -1 : 1),
  );
  return sorted.filter(
    (prefix, at) => !sorted.slice(0, at).some((shorter) => behindPrefix(prefix, shorter) !== undefined),
  );
}
