/** Tokens in files. Owns what such a file may say. */

import type { TokenSource } from "../caller.js";
import { InvalidArgumentError } from "../errors.js";
import { WatchedFiles } from "./files.js";

/** The token in this file, one line, for `new Client({ token })`. Read again when it changes, and when a node has refused what it said. */
export function tokenFile(path: string): TokenSource {
  const files = new WatchedFiles([path], ([text = ""]) => {
    const token = text.trim();
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw new InvalidArgumentError(
        `${path}: a token is one line of printable ASCII characters without spaces`,
      );
    }
    return token;
  });
  return (refused) => files.get(refused !== undefined);
}
