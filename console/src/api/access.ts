/** Requests about users, roles and tokens. */

import type { Camel, Grant, RoleInfo, TokenCreated, UserInfo, Wire } from "quorate";
import { shownName } from "../text/named.js";
import { keyMember, keyWord, pythonOptions, text, typescriptOptions } from "./literals.js";
import { type Request, target } from "./request.js";

/** A page of users. */
export type UserPage = Camel<Wire["UserList"]>;
/** A page of roles. */
export type RolePage = Camel<Wire["RoleList"]>;
/** A page of tokens, without their secrets. */
export type TokenPage = Camel<Wire["TokenList"]>;

type Kind = "users" | "roles" | "tokens";

function nameTarget(kind: Kind, name: string): string {
  return `/v1/access/${kind}/${encodeURIComponent(name)}`;
}

/** What the pages of users, roles and tokens have in common. */
function listed(kind: Kind, command: string, limit: number, cursor: string | undefined) {
  return {
    title: `List the ${kind}`,
    writes: false,
    http: { method: "GET", target: target(`/v1/access/${kind}`, { limit, cursor }) },
    cli: [command, "list"],
    python: `print(client.access.${kind}(limit=${limit}${pythonOptions({ cursor: cursor && text(cursor) })}))`,
    typescript: `console.log(await client.access.${kind}({ limit: ${limit} }).page(${cursor === undefined ? "" : text(cursor)}));`,
  } as const;
}

/** A page of users, by name. */
export function listUsers(limit: number, cursor?: string): Request<UserPage> {
  return {
    ...listed("users", "user", limit, cursor),
    run: (client, signal) => client.access.users({ limit, signal }).page(cursor),
  };
}

/** A page of roles, by name. */
export function listRoles(limit: number, cursor?: string): Request<RolePage> {
  return {
    ...listed("roles", "role", limit, cursor),
    run: (client, signal) => client.access.roles({ limit, signal }).page(cursor),
  };
}

/** A page of tokens, by id. */
export function listTokens(limit: number, cursor?: string): Request<TokenPage> {
  return {
    ...listed("tokens", "token", limit, cursor),
    run: (client, signal) => client.access.tokens({ limit, signal }).page(cursor),
  };
}

/** A user; `undefined` where there is none. */
export function readUser(name: string): Request<UserInfo | undefined> {
  return {
    title: `Read which roles the user \`${shownName(name)}\` has`,
    writes: false,
    http: { method: "GET", target: nameTarget("users", name) },
    cli: ["user", "show", name],
    python: `print(client.access.user(${text(name)}))`,
    typescript: `console.log(await client.access.user(${text(name)}));`,
    run: (client, signal) => client.access.user(name, { signal }),
  };
}

/** Makes a user, or gives one other roles. */
export function setUser(name: string, roles: readonly string[]): Request<UserInfo> {
  const list = `[${roles.map(text).join(", ")}]`;
  return {
    title: `Give the user \`${shownName(name)}\` its roles`,
    writes: true,
    http: { method: "PUT", target: nameTarget("users", name), body: JSON.stringify({ roles }) },
    cli: ["user", "set", name, ...roles],
    python: `client.access.set_user(${text(name)}, ${list})`,
    typescript: `await client.access.setUser(${text(name)}, ${list});`,
    run: (client, signal) => client.access.setUser(name, roles, { signal }),
  };
}

/** Makes a role, or gives one other grants. */
export function setRole(name: string, grants: readonly Grant[]): Request<RoleInfo> {
  const python = grants.map(
    ({ permission, prefix }) => `quorate.types.Grant(permission=${text(permission)}, prefix=${text(prefix)})`,
  );
  const typescript = grants.map(
    ({ permission, prefix }) => `{ permission: ${text(permission)}, prefix: ${text(prefix)} }`,
  );
  const said = grants.map(
    ({ permission, prefix }) => `{"permission":"${permission}",${keyMember("prefix", prefix)}}`,
  );
  return {
    title: `Say what the role \`${shownName(name)}\` allows`,
    writes: true,
    http: { method: "PUT", target: nameTarget("roles", name), body: `{"grants":[${said.join(",")}]}` },
    cli: ["role", "set", name, ...grants.map(({ permission, prefix }) => `${permission}:${keyWord(prefix)}`)],
    python: `client.access.set_role(${text(name)}, [${python.join(", ")}])`,
    typescript: `await client.access.setRole(${text(name)}, [${typescript.join(", ")}]);`,
    run: (client, signal) => client.access.setRole(name, grants, { signal }),
  };
}

/** What an administrator deletes. */
type Removable = "user" | "role" | "token";

const VERBS = { user: "removeUser", role: "removeRole", token: "removeToken" } as const;

/** Deletes a user and its tokens, a role that no user has, or a token by its id. */
export function removeAccess(what: Removable, name: string): Request<unknown> {
  return {
    title: `Delete the ${what} \`${shownName(name)}\``,
    writes: true,
    http: { method: "DELETE", target: nameTarget(`${what}s`, name) },
    cli: [what, "delete", name],
    python: `client.access.remove_${what}(${text(name)})`,
    typescript: `await client.access.${VERBS[what]}(${text(name)});`,
    run: (client, signal) => client.access[VERBS[what]](name, { signal }),
  };
}

/** A token to be made. */
export interface NewToken {
  readonly user: string;
  /** What it is for, for people; may be empty. */
  readonly note: string;
  /** `undefined` for one that never ends by itself. */
  readonly expiresInMs: number | undefined;
}

/** Gives a user a token. Only this answer has the secret. */
export function createToken({ user, note, expiresInMs }: NewToken): Request<TokenCreated> {
  const said = note === "" ? undefined : note;
  const options = typescriptOptions({
    expiresInMs: expiresInMs === undefined ? undefined : String(expiresInMs),
    note: said && text(said),
  });
  return {
    title: `Give the user \`${shownName(user)}\` a token`,
    writes: true,
    http: {
      method: "POST",
      target: "/v1/access/tokens",
      body: JSON.stringify({ user, expires_in_ms: expiresInMs, note: said }),
    },
    cli: [
      "token",
      "create",
      user,
      ...(expiresInMs === undefined ? [] : ["--expires", `${expiresInMs}ms`]),
      ...(said === undefined ? [] : ["--note", said]),
    ],
    python: `print(client.access.create_token(${text(user)}${pythonOptions({
      expires_in: expiresInMs === undefined ? undefined : String(expiresInMs / 1000),
      note: said && text(said),
    })}).token)`,
    typescript: `console.log((await client.access.createToken(${text(user)}${options && `, ${options}`})).token);`,
    run: (client, signal) => client.access.createToken(user, { expiresInMs, note: said, signal }),
  };
}
