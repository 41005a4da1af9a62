/**
 * An entry while it is edited.
 *
 * Owns what the text began as, whether it is JSON, and the write that saves it: on the cas that was read, with the session and the expiry
 * that the entry has.
 */

import type { WriteResult } from "quorate";
import type { StoredEntry } from "../../api/entries.js";
import { type Stored, type WriteConditions, writeEntry } from "../../api/entries.js";
import { JsonText } from "../../api/json-text.js";
import type { Request } from "../../api/request.js";
import { formatJson, storedJson } from "../../json/format.js";
import { type Json, JsonFault, scanJson } from "../../json/scan.js";
import { parseDuration } from "../../text/duration.js";

/** A text and what it began as. */
export interface Draft {
  /** The version that was read; `undefined` where there was no entry. */
  readonly base: StoredEntry | undefined;
  /** The text of that version. */
  readonly before: string;
  readonly text: string;
  /** How long an entry that is created shall live, as somebody types it. */
  readonly life: string;
}

/** What an entry begins as that is not there yet. */
const NEW_TEXT = "{\n  \n}";

/** The draft of an entry as it was read just now. */
export function draftOf(entry: StoredEntry | undefined): Draft {
  const before = entry?.value instanceof JsonText ? entry.value.pretty : "";
  return { base: entry, before, text: entry === undefined ? NEW_TEXT : before, life: "" };
}

/** Whether something would be lost with the draft. */
export function isChanged({ base, before, text }: Draft): boolean {
  return base === undefined ? text !== NEW_TEXT : text !== before;
}

/** The document, or why the text is none. */
export function checked(text: string): Json | JsonFault {
  try {
    return scanJson(text);
  } catch (error) {
    if (error instanceof JsonFault) {
      return error;
    }
    throw error;
  }
}

/** The write that puts this document in the place of the version that was read. */
export function saveOf(key: string, draft: Draft, value: Json): Request<WriteResult<Stored>> {
  return storeOf(key, draft, new JsonText(storedJson(value)));
}

/** The write that puts this value there, whatever it is. */
export function storeOf(key: string, { base, life }: Draft, value: Stored): Request<WriteResult<Stored>> {
  return writeEntry(
    key,
    value,
    base === undefined ? { cas: undefined, ttlMs: parseDuration(life) } : kept(base),
  );
}

/** What is wrong with a span of time that somebody types; `undefined` for one, and for none. */
export function faultOfLife(life: string): string | undefined {
  return life.trim() === "" || (parseDuration(life) ?? 0) > 0 ? undefined : "Say for how long: 90s, 2h, 7d.";
}

/** What a write has to say so that the entry keeps its session and its expiry. */
export function kept(entry: StoredEntry | undefined): WriteConditions {
  return entry === undefined
    ? { cas: undefined }
    : { cas: entry.cas ?? "", keepsTtl: true, ttlMs: entry.ttlMs, session: entry.session };
}

/** What is being done with the entry. What is only asked for is not being done. */
export type Doing = "save" | "delete";

/** The words on the two buttons. */
export function buttonsOf(doing: Doing | undefined, isNew: boolean): Readonly<Record<Doing, string>> {
  return {
    save: doing === "save" ? "Saving …" : isNew ? "Create" : "Save",
    delete: doing === "delete" ? "Deleting …" : "Delete",
  };
}

/** The text of a document for the editor. */
export function editable(value: Json): string {
  return formatJson(value);
}
