/** Collections and sequences: the rules of a prefix, and numbers without gaps. Owns their calls. */

import { etag, namePath, readCall, writeCall } from "./call.js";
import type { Caller } from "./caller.js";
import type {
  CallOptions,
  Cas,
  CollectionInfo,
  CollectionRemoved,
  CollectionRules,
  RequestOptions,
  SequenceInfo,
  SequenceNext,
} from "./types.js";

/** Conditions of a change of rules. */
export interface RulesOptions extends RequestOptions {
  /** Only while the rules are of this version. */
  readonly cas?: Cas | undefined;
  /** Only if there are none yet. */
  readonly ifAbsent?: boolean | undefined;
}

function conditions(options: RulesOptions): Record<string, string> {
  if (options.ifAbsent) {
    return { "if-none-match": "*" };
  }
  return options.cas === undefined ? {} : { "if-match": etag(options.cas) };
}

/** A collection by its name, from `client.collection(name)`. */
export class Collection {
  readonly name: string;
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller, name: string) {
    this.#caller = caller;
    this.name = name;
  }

  /** Its rules, or `undefined`. */
  get(options?: CallOptions): Promise<CollectionInfo | undefined> {
    return this.#caller.find(readCall(this.#path(), undefined, options, { about: { name: this.name } }));
  }

  /** Declares its rules, or other ones. */
  put(rules: CollectionRules, options: RulesOptions = {}): Promise<CollectionInfo> {
    return this.#change("PUT", rules, options);
  }

  /** Removes its rules; the entries stay. Rejects with `not_found`. */
  remove(options: Omit<RulesOptions, "ifAbsent"> = {}): Promise<CollectionRemoved> {
    return this.#change("DELETE", undefined, options);
  }

  #change<Answer>(
    method: "PUT" | "DELETE",
    rules: CollectionRules | undefined,
    options: RulesOptions,
  ): Promise<Answer> {
    const extras = { headers: conditions(options), about: { name: this.name } };
    return this.#caller.fetch(writeCall(method, this.#path(), rules, options, extras));
  }

  #path(): string {
    return namePath("/v1/collections/", this.name);
  }
}

/** A sequence by its name, from `client.sequence(name)`. */
export class Sequence {
  readonly name: string;
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller, name: string) {
    this.#caller = caller;
    this.name = name;
  }

  /** The last number given, 0 before the first. Takes none. */
  get(options?: CallOptions): Promise<SequenceInfo> {
    return this.#caller.fetch(readCall(this.#path(), undefined, options, { about: { name: this.name } }));
  }

  /** Takes the next numbers, which follow one another. */
  next(count = 1, options?: RequestOptions): Promise<SequenceNext> {
    return this.#caller.fetch(
      writeCall("POST", this.#path(), { count }, options, { about: { name: this.name } }),
    );
  }

  #path(): string {
    return namePath("/v1/sequences/", this.name);
  }
}
