/** Requests about one entry: read, written by the cas that was read, deleted, and what it was. */

import { type AuditLine, type AuditPage, type Entry, keyPath, type WriteResult } from "quorate";
import { shownName } from "../text/named.js";
import { JsonText } from "./json-text.js";
import {
  keyMember,
  keyWord,
  pythonOptions,
  pythonValue,
  text,
  typescriptOptions,
  typescriptValue,
} from "./literals.js";
import { type Http, type Request, target } from "./request.js";

/** What is stored: JSON as its text, or bytes. */
export type Stored = JsonText | Uint8Array;
/** An entry with what is stored in it. */
export type StoredEntry = Entry<Stored>;

/** The entry as it is, or as it was at a revision; `undefined` where there is none. */
export function readEntry(key: string, revision?: string): Request<StoredEntry | undefined> {
  const then = revision === undefined ? "" : ` as it was at revision ${revision}`;
  const options = typescriptOptions({ revision: revision && text(revision) });
  return {
    title: `Read \`${shownName(key)}\`${then}`,
    writes: false,
    http: readOf(key, revision),
    cli: ["get", keyWord(key), ...(revision === undefined ? [] : ["--revision", revision])],
    python: `print(client.get(${text(key)}${pythonOptions({ revision })}))`,
    typescript: `console.log(await client.get(${text(key)}${options && `, ${options}`}));`,
    run: (client, signal) => client.get<Stored>(key, { revision, signal }),
  };
}

/** A key that no path holds is asked for in a body, or as the only one of a range. */
function readOf(key: string, revision: string | undefined): Http {
  const path = keyPath(key);
  if (path !== undefined) {
    return { method: "GET", target: target(path, { revision }) };
  }
  return revision === undefined
    ? { method: "POST", target: "/v1/ops", body: `{"op":"get",${keyMember("key", key)}}` }
    : { method: "GET", target: target("/v1/kv", { start: key, end: `${key}\0`, revision }) };
}

/** What a write expects to find, and what it keeps. */
export interface WriteConditions {
  /** The version that was read; `undefined` where there was no entry. */
  readonly cas: string | undefined;
  /** How long it lives from the write on; without it for ever, or what its collection says. */
  readonly ttlMs?: number | undefined;
  /** It expires when it would have without the write. `ttlMs` is what it had left then, for languages that have no word for that. */
  readonly keepsTtl?: boolean | undefined;
  /** The session that it goes with. */
  readonly session?: string | undefined;
}

/** Writes a value in place of the version that was read, or creates the entry where there was none. */
export function writeEntry(
  key: string,
  value: JsonText | Uint8Array,
  conditions: WriteConditions,
): Request<WriteResult<Stored>> {
  const { cas, ttlMs, keepsTtl, session } = conditions;
  const isNew = cas === undefined;
  const lives = keepsTtl ? ({ ttl: "keep" } as const) : { ttlMs };
  return {
    title: isNew
      ? `Create \`${shownName(key)}\``
      : `Write \`${shownName(key)}\` in place of the version with cas ${cas}`,
    writes: true,
    http: { method: "POST", target: "/v1/ops", body: bodyOf(key, value, conditions) },
    ...(value instanceof JsonText && { cli: cliOf(key, value, conditions) }),
    python: `client.put(${text(key)}, ${pythonOf(value)}${pythonOptions({
      cas: cas && text(cas),
      if_absent: isNew ? "True" : undefined,
      ttl: ttlMs === undefined ? undefined : String(ttlMs / 1000),
      session: session && text(session),
    })})`,
    typescript: `await client.put(${text(key)}, ${typescriptOf(value)}, ${typescriptOptions({
      cas: cas && text(cas),
      ifAbsent: isNew ? "true" : undefined,
      ttlMs: keepsTtl || ttlMs === undefined ? undefined : String(ttlMs),
      ttl: keepsTtl ? text("keep") : undefined,
      session: session && text(session),
    })});`,
    run: (client, signal) =>
      client.put<Stored>(key, value, { cas, ifAbsent: isNew, ...lives, session, signal }),
  };
}

function bodyOf(key: string, value: Stored, { cas, ttlMs, keepsTtl, session }: WriteConditions): string {
  const members = [
    ["op", cas === undefined ? '"insert"' : '"replace"'],
    value instanceof JsonText ? ["value", value.text] : ["value_base64", JSON.stringify(base64(value))],
    ["cas", cas && JSON.stringify(cas)],
    ["ttl_ms", keepsTtl || ttlMs === undefined ? undefined : String(ttlMs)],
    ["ttl", keepsTtl ? '"keep"' : undefined],
    ["session", session && JSON.stringify(session)],
  ];
  const said = members.filter(([, json]) => json !== undefined);
  const [op, ...rest] = said.map(([name, json]) => `"${name}":${json}`);
  return `{${[op, keyMember("key", key), ...rest].join(",")}}`;
}

function cliOf(key: string, value: JsonText, { cas, ttlMs, session }: WriteConditions): string[] {
  const begin =
    cas === undefined ? ["insert", keyWord(key), value.text] : ["cas", keyWord(key), cas, value.text];
  const ttl = ttlMs === undefined ? [] : ["--ttl", `${ttlMs}ms`];
  return [...begin, ...ttl, ...(session === undefined ? [] : ["--session", session])];
}

function pythonOf(value: Stored): string {
  return value instanceof JsonText
    ? pythonValue(value.text)
    : `base64.b64decode(${text(base64(value))})  # import base64`;
}

function typescriptOf(value: Stored): string {
  return value instanceof JsonText
    ? typescriptValue(value.text)
    : `Uint8Array.from(atob(${text(base64(value))}), (byte) => byte.charCodeAt(0))`;
}

function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** Deletes the version that was read. */
export function removeEntry(key: string, cas: string): Request<WriteResult<Stored>> {
  return {
    title: `Delete \`${shownName(key)}\`, in the version with cas ${cas}`,
    writes: true,
    http: {
      method: "POST",
      target: "/v1/ops",
      body: `{"op":"remove",${keyMember("key", key)},"cas":${JSON.stringify(cas)}}`,
    },
    cli: ["delete", keyWord(key), "--cas", cas],
    python: `client.remove(${text(key)}, cas=${text(cas)})`,
    typescript: `await client.remove(${text(key)}, { cas: ${text(cas)} });`,
    run: (client, signal) => client.remove<Stored>(key, { cas, signal }),
  };
}

/** Sets how long an entry lives from now on, 0 for ever, and changes nothing else. */
export function touchEntry(key: string, ttlMs: number): Request<WriteResult> {
  return {
    title:
      ttlMs === 0
        ? `Let \`${shownName(key)}\` live for ever`
        : `Let \`${shownName(key)}\` live for ${ttlMs} ms from now on`,
    writes: true,
    http: {
      method: "POST",
      target: "/v1/ops",
      body: `{"op":"touch",${keyMember("key", key)},"ttl_ms":${ttlMs}}`,
    },
    cli: ["touch", keyWord(key), "--ttl", `${ttlMs}ms`],
    python: `client.touch(${text(key)}, ${ttlMs / 1000})`,
    typescript: `await client.touch(${text(key)}, ${ttlMs});`,
    run: (client, signal) => client.touch(key, ttlMs, { signal }),
  };
}

/** The decision that made the entry what it is since this revision; `undefined` where it is not remembered any more. */
export function readChange(key: string, revision: string): Request<AuditLine | undefined> {
  return {
    title: `Look up who changed \`${shownName(key)}\` at revision ${revision}, and when`,
    writes: false,
    http: { method: "GET", target: target("/v1/audit", { key, from: revision }) },
    cli: ["audit", keyWord(key), "--from", revision],
    python: `print(client.access.audit(${text(key)}, from_revision=${revision}))`,
    typescript: `console.log(await client.audit(${text(key)}, { from: ${text(revision)} }).page());`,
    run: async (client, signal) => {
      const { lines } = await client.audit(key, { from: revision, signal }).page();
      return lines.find((line) => line.revision === revision && line.effect === "changed");
    },
  };
}

/** A page of the decisions about an entry, refused ones too, oldest first. */
export function readAudit(key: string, cursor?: string): Request<AuditPage> {
  return {
    title: `Read who changed \`${shownName(key)}\`, who tried to, and when`,
    writes: false,
    http: { method: "GET", target: target("/v1/audit", { key, cursor }) },
    cli: ["audit", keyWord(key)],
    python: `print(client.access.audit(${text(key)}${pythonOptions({ cursor: cursor && text(cursor) })}))`,
    typescript:
      cursor === undefined
        ? `for await (const line of client.audit(${text(key)})) console.log(line);`
        : `console.log(await client.audit(${text(key)}).page(${text(cursor)}));`,
    run: (client, signal) => client.audit(key, { signal }).page(cursor),
  };
}
