/**
 * Whether somebody may do something, by the grants that they have.
 *
 * Owns the rule, which is the nodes': a grant holds for all names that begin with its prefix, byte by byte; `admin` allows all, and
 * `write` and `lock` allow to read. The API answers no such question.
 */

import type { Grant } from "quorate";
import { behindPrefix } from "../../text/named.js";

/** A permission. */
export type Permission = Grant["permission"];

/** All permissions, and what each is for. */
export const PERMISSIONS: readonly { readonly id: Permission; readonly what: string }[] = [
  { id: "read", what: "read, find, count and watch" },
  { id: "write", what: "change entries, schedule and work on tasks" },
  { id: "lock", what: "lock entries, take locks, stand for election" },
  { id: "admin", what: "set the rules of collections; on everything: administer the cluster" },
];

/** The user that there always is, with every right. */
export const ROOT = "root";

/** Grants, and the role that they come from; `undefined` where that is not told. */
export interface Source {
  readonly role: string | undefined;
  readonly grants: readonly Grant[];
}

/** A grant that allows something, and its role. */
export interface Reason {
  readonly role: string | undefined;
  readonly grant: Grant;
}

/** All grants that allow this on this name; none where it is not allowed. */
export function reasons(sources: readonly Source[], permission: Permission, name: string): Reason[] {
  return sources.flatMap(({ role, grants }) =>
    grants.filter((grant) => allows(grant, permission, name)).map((grant) => ({ role, grant })),
  );
}

function allows(grant: Grant, permission: Permission, name: string): boolean {
  const isEnough = grant.permission === "admin" || grant.permission === permission || permission === "read";
  return isEnough && begins(name, grant.prefix);
}

function begins(name: string, prefix: string): boolean {
  return behindPrefix(name, prefix) !== undefined;
}

/** Grants that are near: they allow it elsewhere, or something else here. */
export function near(sources: readonly Source[], permission: Permission, name: string): Reason[] {
  return sources.flatMap(({ role, grants }) =>
    grants
      .filter(
        (grant) =>
          begins(name, grant.prefix) || allows(grant, permission, grant.prefix) || begins(grant.prefix, name),
      )
      .map((grant) => ({ role, grant })),
  );
}

/** Whether these grants administer the cluster. */
export function administers(grants: readonly Grant[]): boolean {
  return grants.some(({ permission, prefix }) => permission === "admin" && prefix === "");
}
