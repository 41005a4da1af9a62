/** Requests about many keys: listed, counted, found by what holds of their fields. */

import {
  bytesOfKey,
  type Counted,
  type FindPage,
  keyOfBytes,
  keyOfShown,
  type ListPage,
  type Operator,
} from "quorate";
import { compactJson, escapedJson, quoted, visible } from "../json/format.js";
import { type Json, scanJson } from "../json/scan.js";
import { shownName } from "../text/named.js";
import type { Stored } from "./entries.js";
import { JsonText } from "./json-text.js";
import {
  isText,
  keyBase64,
  keyMember,
  keyWord,
  pythonOptions,
  pythonValue,
  text,
  typescriptOptions,
  typescriptValue,
} from "./literals.js";
import { type Request, target } from "./request.js";

/** Which keys are listed. */
export interface Range {
  /** Those that begin so … */
  readonly prefix: string;
  /** … from this one on. */
  readonly from?: string | undefined;
  /** Most keys of the page. */
  readonly limit: number;
}

/** A page of keys, without values. */
export function listKeys({ prefix, from, limit }: Range): Request<ListPage> {
  const isWhole = from === undefined || from === prefix;
  const end = isWhole ? undefined : endOfPrefix(prefix);
  const python = isWhole ? { prefix: text(prefix) } : { start: text(from), end: end && text(end) };
  const typescript = isWhole ? { prefix: text(prefix) } : { start: text(from), end: end && text(end) };
  const query = isWhole ? { prefix } : { start: from, end };
  const shown = { limit: String(limit), keys_only: "True" };
  return {
    title: prefix === "" ? "List keys" : `List the keys that begin with \`${shownName(prefix)}\``,
    writes: false,
    http: { method: "GET", target: target("/v1/kv", { ...query, limit, keys_only: true }) },
    cli: ["list", ...(prefix === "" ? [] : [keyWord(prefix)]), "--keys", "--limit", String(limit)],
    python: `print(client.list(${pythonOptions({ ...python, ...shown }).slice(2)}))`,
    typescript: `console.log(await client.list(${typescriptOptions({ ...typescript, limit: String(limit), keysOnly: "true" })}).page());`,
    run: (client, signal) => client.list({ ...query, limit, keysOnly: true, signal }).page(),
  };
}

/** How many keys begin so. */
export function countKeys(prefix: string): Request<Counted> {
  const body = prefix === "" ? {} : { prefix };
  return {
    title: prefix === "" ? "Count all keys" : `Count the keys that begin with \`${shownName(prefix)}\``,
    writes: false,
    http: {
      method: "POST",
      target: "/v1/count",
      body: prefix === "" ? "{}" : `{${keyMember("prefix", prefix)}}`,
    },
    cli: ["count", ...(prefix === "" ? [] : [keyWord(prefix)])],
    python: `print(client.count(${prefix === "" ? "" : text(prefix)}))`,
    typescript: `console.log(await client.count(${prefix === "" ? "" : `{ prefix: ${text(prefix)} }`}));`,
    run: (client, signal) => client.count({ ...body, signal }),
  };
}

/** The key behind all keys that begin so; `undefined` where there is none such. */
export function endOfPrefix(prefix: string): string | undefined {
  if (!isText(prefix)) {
    return endOfBytes(prefix);
  }
  const points = Array.from(prefix);
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const point = last.codePointAt(0) ?? 0;
    if (point < 0x10ffff) {
      // No character has a code of a half of a pair.
      return points.join("") + String.fromCodePoint(point === 0xd7ff ? 0xe000 : point + 1);
    }
  }
  return undefined;
}

function endOfBytes(prefix: string): string | undefined {
  const bytes = [...bytesOfKey(prefix)];
  for (let last = bytes.pop(); last !== undefined; last = bytes.pop()) {
    if (last < 0xff) {
      return keyOfBytes(Uint8Array.from([...bytes, last + 1]));
    }
  }
  return undefined;
}

/** Operators that take no value. */
const WITHOUT_VALUE: readonly string[] = ["exists", "nexists"];

/** All operators, as they are offered. */
export const OPERATORS: readonly Operator[] = [
  "eq",
  "neq",
  "lt",
  "lte",
  "gt",
  "gte",
  "in",
  "nin",
  "between",
  "exists",
  "nexists",
  "contains",
  "ncontains",
  "starts",
  "ends",
  "like",
];

/** One comparison, its value as JSON text. */
export interface Condition {
  readonly field: string;
  readonly op: Operator;
  readonly value?: JsonText;
}

/**
 * A comparison as the command line takes it: `FIELD OP VALUE`. A value that is no JSON is a string. Says in words what is wrong with
 * one that is none.
 */
export function parseCondition(line: string): Condition | string {
  const [, field, op, rest] = /^\s*(\S+)\s+(\S+)\s*([\s\S]*)$/.exec(line) ?? [];
  if (field === undefined || op === undefined) {
    return "a condition is a field, an operator and a value: status eq pending";
  }
  if (!OPERATORS.includes(op as Operator)) {
    return `there is no operator \`${op}\`; there are ${OPERATORS.join(", ")}`;
  }
  const value = rest?.trim() ?? "";
  if (WITHOUT_VALUE.includes(op)) {
    return value === ""
      ? { field, op: op as Operator }
      : `\`${op}\` takes no value, and there is \`${value}\``;
  }
  return value === ""
    ? `\`${op}\` takes a value: ${field} ${op} …`
    : { field, op: op as Operator, value: typedValue(field, value) };
}

function typedValue(field: string, word: string): JsonText {
  try {
    return new JsonText(compactJson(scanJson(word)));
  } catch {
    // Whoever types `pending` means the string.
    return wordValue(field, word);
  }
}

/** The field that stands for the key of an entry. */
const KEY_FIELD = "$key";

/** A value that is no JSON, of this field: a string, and of a key what is shown like this. */
export function wordValue(field: string, word: string): JsonText {
  return new JsonText(field === KEY_FIELD ? keyJson(keyOfShown(word)) : quoted(word));
}

/** The word that means this value of this field; `undefined` where only JSON can say it. */
export function wordOf(field: string, value: Json): string | undefined {
  if (field !== KEY_FIELD) {
    return value.kind === "string" ? value.value : undefined;
  }
  const key = keyIn(value);
  return key === undefined ? undefined : shownName(key);
}

/** A key as conditions have it: in base64 where it is no text. */
function keyJson(key: string): string {
  return isText(key) ? quoted(key) : `{"base64":"${keyBase64(key)}"}`;
}

/** The key that a value of a condition is; `undefined` where it is none. */
function keyIn(value: Json): string | undefined {
  if (value.kind === "string") {
    return value.value;
  }
  const [member, other] = value.kind === "object" ? value.members : [];
  if (member?.name !== "base64" || member.value.kind !== "string" || other !== undefined) {
    return undefined;
  }
  try {
    return keyOfBytes(Uint8Array.from(atob(member.value.value), (byte) => byte.charCodeAt(0)));
  } catch {
    // No base64, which the node will say.
    return undefined;
  }
}

/** A comparison as somebody types it, for people: what is shown is what {@link parseCondition} takes. */
export function shownCondition({ field, op, value }: Condition, preview?: number): string {
  if (value === undefined) {
    return `${visible(field)} ${op}`;
  }
  const word = field === KEY_FIELD ? wordOf(field, value.tree) : undefined;
  // A key that looks like JSON is shown as JSON.
  const isTaken = word !== undefined && word !== "" && typedValue(field, word).text === value.text;
  const json = preview === undefined ? value.text : value.preview(preview);
  return `${visible(field)} ${op} ${isTaken ? word : escapedJson(json)}`;
}

/** A comparison as it was typed, for people: a key in the one form that keys have. */
export function shownWords(words: string): string {
  const condition = parseCondition(words);
  return typeof condition === "string" || condition.field !== KEY_FIELD
    ? visible(words)
    : shownCondition(condition);
}

/** What has to hold: a comparison, or any of several. */
export type Clause = Condition | { readonly any: readonly Condition[] };

/** Clauses, all of which have to hold, as JSON text. */
export function clausesJson(where: readonly Clause[]): string {
  return `[${where.map(jsonOf).join(",")}]`;
}

function jsonOf(clause: Clause): string {
  if ("any" in clause) {
    return `{"any":${clausesJson(clause.any)}}`;
  }
  const { field, op, value } = clause;
  return `{"field":${JSON.stringify(field)},"op":"${op}"${value === undefined ? "" : `,"value":${value.text}`}}`;
}

/** Clauses as the command line takes them. */
export function clausesCli(where: readonly Clause[]): string[] {
  return where.flatMap((clause) => ["--where", wordsOf(clause)]);
}

/** `FIELD OP VALUE`, or JSON where that cannot say it. */
function wordsOf(clause: Clause): string {
  if ("any" in clause || /\s/.test(clause.field)) {
    return jsonOf(clause);
  }
  const { field, op, value } = clause;
  return [field, op, ...(value === undefined ? [] : [value.text])].join(" ");
}

/** What is looked for. */
export interface Search {
  readonly prefix: string;
  /** What has to hold of the entries, all of it. */
  readonly where: readonly Clause[];
  /** By which fields they are ordered, `-` before one for the greatest first. Without it, by key. */
  readonly orderBy?: readonly string[] | undefined;
  /** Without values. */
  readonly keysOnly?: true | undefined;
  readonly limit: number;
  /** Where the page before ended. */
  readonly cursor?: string | undefined;
}

/** A page of the entries of which something holds. */
export function findEntries(search: Search): Request<FindPage<Stored>> {
  const { prefix, where, keysOnly, limit, cursor } = search;
  const conditions = clausesJson(where);
  const orderBy = search.orderBy?.length ? search.orderBy : undefined;
  const orderText = orderBy && `[${orderBy.map(text).join(", ")}]`;
  const python = { order_by: orderText, limit: String(limit), keys_only: keysOnly && "True" };
  return {
    title: `Search entries${prefix === "" ? "" : ` below \`${shownName(prefix)}\``} by field conditions`,
    writes: false,
    http: { method: "POST", target: "/v1/find", body: findBody({ ...search, orderBy }) },
    cli: [
      "find",
      ...(prefix === "" ? [] : [keyWord(prefix)]),
      ...clausesCli(where),
      ...(orderBy === undefined ? [] : ["--order-by", orderBy.join(",")]),
      ...(keysOnly ? ["--keys"] : []),
      "--limit",
      String(limit),
    ],
    python: `print(client.find(${text(prefix)}, ${pythonValue(conditions)}${pythonOptions({ ...python, cursor: cursor && text(cursor) })}))`,
    typescript: `console.log(await client.find(${typescriptOptions({
      prefix: prefix === "" ? undefined : text(prefix),
      where: typescriptValue(conditions),
      orderBy: orderText,
      limit: String(limit),
      keysOnly: keysOnly && "true",
    })}).page(${cursor === undefined ? "" : text(cursor)}));`,
    run: (client, signal) =>
      client
        .find<Stored>({
          ...(prefix !== "" && { prefix }),
          where,
          orderBy,
          limit,
          keysOnly,
          signal,
        })
        .page(cursor),
  };
}

function findBody({ prefix, where, orderBy, limit, keysOnly, cursor }: Search): string {
  const parts = [
    prefix === "" ? undefined : keyMember("prefix", prefix),
    `"where":${clausesJson(where)}`,
    orderBy && `"order_by":${JSON.stringify(orderBy)}`,
    `"limit":${limit}`,
    keysOnly && '"keys_only":true',
    cursor && `"cursor":${JSON.stringify(cursor)}`,
  ];
  return `{${parts.filter((part) => part !== undefined).join(",")}}`;
}
