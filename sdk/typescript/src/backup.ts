/**
 * Backups: the whole cluster as one stream of bytes.
 *
 * Owns that a stream which broke off, or has no end, is an error and never a short backup. The checksums in it are looked at by
 * `quorate-node backup verify`.
 */

import { readCall } from "./call.js";
import type { Caller } from "./caller.js";
import { ProtocolError } from "./errors.js";
import { checkOptions } from "./options.js";
import { after, anySignal } from "./timing.js";
import type { Revision } from "./types.js";
import type { Wire } from "./wire.js";

const BACKUP = "application/vnd.quorate.backup";
/** What the last bytes of a backup begin with: 0x89 "QRBEND" and a line feed. */
const END_MAGIC = new Uint8Array([0x89, 0x51, 0x52, 0x42, 0x45, 0x4e, 0x44, 0x0a]);
/** How many those are. */
const END_BYTES = 72;
/** How long nothing may come: a node that reads from a slow disk still sends something every second. */
const PATIENCE_MS = 30_000;

/** What a backup is to be. */
export interface BackupOptions {
  /** `local`: whatever the asked node has, without asking the others; also where there is no quorum. */
  readonly consistency?: Wire["ReadConsistency"] | undefined;
  /** Gives it up. */
  readonly signal?: AbortSignal | undefined;
}

/** What the end of a backup says. */
export interface BackupEnd {
  /** How long it is. */
  readonly bytes: number;
  /** Rows in it. */
  readonly rows: number;
  /** The revision that it is of. */
  readonly revision: Revision;
}

/**
 * The pieces of a backup; its return value is what its end says. Rejects where it breaks off: what came until then is worth nothing. Is not
 * tried again once it has begun.
 */
export async function* backup(
  caller: Caller,
  options: BackupOptions,
): AsyncGenerator<Uint8Array, BackupEnd, undefined> {
  checkOptions(options);
  const { signal, release } = anySignal(options.signal, caller.closed);
  const call = readCall("/v1/cluster/backup", { consistency: options.consistency }, { signal });
  const stream = await caller.open(call, BACKUP, caller.settings.timeoutMs);
  const reader = stream.body.getReader();
  const tail = new Tail();
  try {
    for (;;) {
      const timer = after(PATIENCE_MS, () => stream.close());
      const { done, value } = await reader.read().finally(() => timer.cancel());
      if (done) {
        break;
      }
      tail.take(value);
      yield value;
    }
    const end = tail.end();
    if (end === undefined) {
      throw caller.strange(stream.node, `the backup is cut short after ${tail.bytes} bytes`);
    }
    return end;
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof ProtocolError
      ? error
      : caller.strange(stream.node, `the backup broke off after ${tail.bytes} bytes`, error);
  } finally {
    stream.close();
    release();
  }
}

/** The last bytes of what came so far. */
class Tail {
  #last = new Uint8Array(0);
  /** How many bytes came. */
  bytes = 0;

  take(piece: Uint8Array): void {
    this.bytes += piece.length;
    const joined = new Uint8Array(this.#last.length + piece.length);
    joined.set(this.#last);
    joined.set(piece, this.#last.length);
    this.#last = joined.slice(-END_BYTES);
  }

  /** What the end says; `undefined` where it is none. */
  end(): BackupEnd | undefined {
    if (this.#last.length < END_BYTES || !END_MAGIC.every((byte, at) => this.#last[at] === byte)) {
      return undefined;
    }
    const view = new DataView(this.#last.buffer);
    const rows = Number(view.getBigUint64(8, true));
    return { bytes: this.bytes, rows, revision: String(view.getBigUint64(32, true)) };
  }
}
