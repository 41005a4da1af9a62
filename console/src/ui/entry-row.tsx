/** A row of a list for an entry: its key and the beginning of its value. Owns how much of the value. */

import type { StoredEntry } from "../api/entries.js";
import { JsonText } from "../api/json-text.js";
import { visible } from "../json/format.js";
import { bytes } from "../text/words.js";
import { Icon } from "./icon.js";
import { KeyName } from "./key-name.js";

const PREVIEW_LENGTH = 120;

/** The row. */
export function EntryRow({ entry }: { readonly entry: StoredEntry | undefined }) {
  if (entry === undefined) {
    return null;
  }
  const { value } = entry;
  return (
    <>
      <Icon name="entry" />
      <KeyName name={entry.key} />
      <bdi class="row-aside">
        {value instanceof JsonText
          ? visible(value.preview(PREVIEW_LENGTH))
          : `${bytes(value.length)} of bytes`}
      </bdi>
    </>
  );
}
