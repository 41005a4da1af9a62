/** Users, roles and tokens, and who the caller is. Owns their calls. */

import { namePath, readCall, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import type { Camel } from "./names.js";
import { checkOptions } from "./options.js";
import { Pages } from "./pages.js";
import type {
  CallOptions,
  Grant,
  RequestOptions,
  RoleInfo,
  Self,
  TokenCreated,
  TokenInfo,
  UserInfo,
} from "./types.js";
import type { Wire } from "./wire.js";

const USERS = "/v1/access/users";
const ROLES = "/v1/access/roles";
const TOKENS = "/v1/access/tokens";

/** What a page takes. */
export interface PageOptions extends CallOptions {
  /** Most items of a page. */
  readonly limit?: number | undefined;
}

/** What a token takes. */
export interface TokenOptions extends RequestOptions {
  /** After so long it is good for nothing any more; without this, it never ends by itself. */
  readonly expiresInMs?: number | undefined;
  /** What it is for, for people. */
  readonly note?: string | undefined;
}

/** Who may do what, from `client.access`. */
export class Access {
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Whom the cluster takes this client for, and everything that one may do. */
  whoAmI(options?: CallOptions): Promise<Self> {
    return this.#caller.fetch(readCall("/v1/access/self", undefined, options));
  }

  /** Makes a user, or gives one other roles, which must all exist. */
  setUser(name: string, roles: readonly string[], options?: RequestOptions): Promise<UserInfo> {
    return this.#caller.fetch(
      writeCall("PUT", namePath(`${USERS}/`, name), { roles }, options, { about: { user: name } }),
    );
  }

  /** A user, or `undefined`. */
  user(name: string, options?: CallOptions): Promise<UserInfo | undefined> {
    return this.#caller.find(
      readCall(namePath(`${USERS}/`, name), undefined, options, { about: { user: name } }),
    );
  }

  /** All users, by name. */
  users(options: PageOptions = {}): Pages<UserInfo, Camel<Wire["UserList"]>> {
    return this.#pages(USERS, options, (page) => page.users);
  }

  /** Removes a user, and its tokens with it. Rejects with `not_found`. */
  removeUser(name: string, options?: RequestOptions): Promise<Camel<Wire["UserRemoved"]>> {
    return this.#caller.fetch(
      writeCall("DELETE", namePath(`${USERS}/`, name), undefined, options, { about: { user: name } }),
    );
  }

  /** Makes a role, or gives one other grants: they hold at once for all who have it. */
  setRole(name: string, grants: readonly Grant[], options?: RequestOptions): Promise<RoleInfo> {
    return this.#caller.fetch(
      writeCall("PUT", namePath(`${ROLES}/`, name), { grants }, options, { about: { role: name } }),
    );
  }

  /** A role, or `undefined`. */
  role(name: string, options?: CallOptions): Promise<RoleInfo | undefined> {
    return this.#caller.find(
      readCall(namePath(`${ROLES}/`, name), undefined, options, { about: { role: name } }),
    );
  }

  /** All roles, by name. */
  roles(options: PageOptions = {}): Pages<RoleInfo, Camel<Wire["RoleList"]>> {
    return this.#pages(ROLES, options, (page) => page.roles);
  }

  /** Removes a role. Rejects with `not_found`, and with `in_use` while a user has it. */
  removeRole(name: string, options?: RequestOptions): Promise<Camel<Wire["RoleRemoved"]>> {
    return this.#caller.fetch(
      writeCall("DELETE", namePath(`${ROLES}/`, name), undefined, options, { about: { role: name } }),
    );
  }

  /**
   * Gives a user a token. Rejects with `request_id_reused` where an earlier try was carried out whose answer got lost: the secret is lost
   * with it.
   */
  createToken(user: string, options: TokenOptions = {}): Promise<TokenCreated> {
    const { expiresInMs, note } = options;
    return this.#caller.fetch(writeCall("POST", TOKENS, { user, expiresInMs, note }, options));
  }

  /** All tokens, by id, without their secrets. */
  tokens(options: PageOptions = {}): Pages<TokenInfo, Camel<Wire["TokenList"]>> {
    return this.#pages(TOKENS, options, (page) => page.tokens);
  }

  /** Removes a token by its public id. Rejects with `not_found`. */
  removeToken(id: string, options?: RequestOptions): Promise<Camel<Wire["TokenRemoved"]>> {
    return this.#caller.fetch(
      writeCall("DELETE", namePath(`${TOKENS}/`, id), undefined, options, { about: { id } }),
    );
  }

  #pages<Item, Page extends { cursor?: string }>(
    route: string,
    options: PageOptions,
    items: (page: Page) => Item[],
  ): Pages<Item, Page> {
    checkOptions(options);
    const { limit } = options;
    return new Pages(
      (cursor) => this.#caller.fetch<Page>(readCall(route, { limit, cursor }, options)),
      items,
    );
  }
}
