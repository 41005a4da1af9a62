/** A value as a file of this machine: saved to one, or taken from one. Owns the name of the file. */

import type { Stored } from "../../api/entries.js";
import { JsonText } from "../../api/json-text.js";
import { shownName } from "../../text/named.js";

/** The name of a file for the value of this key: its last part, in letters that every system takes. */
export function fileNameOf(key: string, isJson: boolean): string {
  const last =
    shownName(key)
      .split("/")
      .findLast((part) => part !== "") ?? "";
  const name = last.replace(/[^\w.-]+/g, "_").replace(/^\.+/, "") || "value";
  return isJson && !name.endsWith(".json") ? `${name}.json` : name;
}

/** Saves a value as a file. */
export function download(key: string, value: Stored): void {
  const isJson = value instanceof JsonText;
  const type = isJson ? "application/json" : "application/octet-stream";
  const url = URL.createObjectURL(new Blob([isJson ? value.text : new Uint8Array(value)], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = fileNameOf(key, isJson);
  link.click();
  URL.revokeObjectURL(url);
}

/** Takes a file. */
export function Upload({
  label,
  isOff,
  onFile,
}: {
  readonly label: string;
  readonly isOff: boolean;
  readonly onFile: (file: File) => void;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="file"
        disabled={isOff}
        onChange={(event) => {
          const [file] = event.currentTarget.files ?? [];
          // The same file may be chosen again.
          event.currentTarget.value = "";
          if (file !== undefined) {
            onFile(file);
          }
        }}
      />
    </label>
  );
}
