/** Sessions by their ids, whoever holds them: looked at, renewed, ended. Owns their calls. */

import { namePath, readCall, repeatableCall, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import { RejectedError } from "./errors.js";
import type { CallOptions, RequestOptions, SessionEnded, SessionInfo, SessionRenewed } from "./types.js";

function path(id: string, verb = ""): string {
  return namePath("/v1/sessions/", id, verb);
}

function about(session: string) {
  return { about: { session } };
}

/** A session by its id, from `client.sessionById(id)`. */
export class SessionById {
  readonly id: string;
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller, id: string) {
    this.#caller = caller;
    this.id = id;
  }

  /** What it is and holds, or `undefined`. */
  async get(options?: CallOptions): Promise<SessionInfo | undefined> {
    try {
      return await this.#caller.find<SessionInfo>(
        readCall(path(this.id), undefined, options, about(this.id)),
      );
    } catch (error) {
      if (error instanceof RejectedError && error.code === "session_expired") {
        return undefined;
      }
      throw error;
    }
  }

  /** Renews it once. Rejects with `session_expired`. */
  renew(options?: CallOptions): Promise<SessionRenewed> {
    return this.#caller.fetch(repeatableCall(path(this.id, "/renew"), options, about(this.id)));
  }

  /** Ends it, and with it all that hangs on it. Rejects with `session_expired`. */
  end(options?: RequestOptions): Promise<SessionEnded> {
    return this.#caller.fetch(writeCall("DELETE", path(this.id), undefined, options, about(this.id)));
  }
}

/** Ends a session by its id; one that had ended already is as good. */
export async function endSession(
  caller: Caller,
  id: string,
  options: CallOptions = {},
): Promise<SessionEnded | undefined> {
  try {
    return await caller.fetch<SessionEnded>(writeCall("DELETE", path(id), undefined, options, about(id)));
  } catch (error) {
    if (error instanceof RejectedError && error.code === "session_expired") {
      return undefined;
    }
    throw error;
  }
}
