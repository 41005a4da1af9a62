/** Backups into files: a file is only there once its backup is whole, and durable. Owns the file. */

import { randomBytes } from "node:crypto";
import { link, open, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import type { BackupEnd, BackupOptions } from "../backup.js";
import type { Client } from "../client.js";
import { InvalidArgumentError } from "../errors.js";

/** A backup that is whole and durable. */
export interface SavedBackup extends BackupEnd {
  /** The file. */
  readonly path: string;
}

/** How a backup is saved. */
export interface SaveBackupOptions extends BackupOptions {
  /** Is told how many bytes are written, now and then. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
}

/** Takes a backup of the cluster into this file, which must not be there yet. While it is written it has `.part` behind its name. */
export async function saveBackup(
  client: Client,
  path: string,
  options: SaveBackupOptions = {},
): Promise<SavedBackup> {
  // Another one may be on its way to the same file.
  const part = `${path}.part-${randomBytes(4).toString("hex")}`;
  try {
    const end = await receive(client, part, options);
    // Not a rename: it would replace a file that has come meanwhile.
    await link(part, path).catch((cause: NodeJS.ErrnoException) => {
      throw cause.code === "EEXIST"
        ? new InvalidArgumentError(`${path} is there already; a backup replaces nothing`, cause)
        : cause;
    });
    await sync(dirname(path));
    return { path, ...end };
  } finally {
    await unlink(part).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") {
        throw error;
      }
    });
  }
}

async function receive(client: Client, part: string, options: SaveBackupOptions): Promise<BackupEnd> {
  // Only its owner may read it: all of the cluster is in it.
  const file = await open(part, "wx", 0o600);
  try {
    const pieces = client.backup(options);
    let bytes = 0;
    for (;;) {
      const { done, value } = await pieces.next();
      if (done) {
        await file.sync();
        return value;
      }
      await file.writeFile(value);
      bytes += value.length;
      options.onProgress?.(bytes);
    }
  } finally {
    await file.close();
  }
}

async function sync(directory: string): Promise<void> {
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
