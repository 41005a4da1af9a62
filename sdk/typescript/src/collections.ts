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

function conditions(options: RulesOptions): { headers: Record<string, string> } {
  if (options.ifAbsent) {
    return { headers: { "if-none-match": "*" } };
  }
  return { headers: options.cas === undefined ? {} : { "if-match": etag(options.cas) } };
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
    return this.#caller.find(readCall(this.#path(), undefined, options));
  }

  /** Declares its rules, or other ones. */
  put(rules: CollectionRules, options: RulesOptions = {}): Promise<CollectionInfo> {
    return this.#caller.fetch(writeCall("PUT", this.#path(), rules, options, conditions(options)));
  }

  /** Removes its rules; the entries stay. Rejects with `not_found`. */
  remove(options: Omit<RulesOptions, "ifAbsent"> = {}): Promise<CollectionRemoved> {
    return this.#caller.fetch(writeCall("DELETE", this.#path(), undefined, options, conditions(options)));
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
    return this.#caller.fetch(readCall(this.#path(), undefined, options));
  }

  /** Takes the next numbers, which follow one another. */
  next(count = 1, options?: RequestOptions): Promise<SequenceNext> {
    return this.#caller.fetch(writeCall("POST", this.#path(), { count }, options));
  }

  #path(): string {
    return namePath("/v1/sequences/", this.name);
  }
}
