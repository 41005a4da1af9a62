/**
 * A search as somebody puts it together: comparisons with typed values, all or any of them, an order.
 *
 * Owns how a draft becomes a search, how a search stands in the address, and the words for what is missing.
 */

import { keyOfShown, type Operator } from "quorate";
import { JsonText } from "../../api/json-text.js";
import {
  type Clause,
  type Condition,
  OPERATORS,
  parseCondition,
  shownCondition,
  wordOf,
  wordValue,
} from "../../api/keys.js";
import { compactJson, storedJson } from "../../json/format.js";
import { type Json, scanJson } from "../../json/scan.js";
import type { Query } from "../../state/route.js";
import { nameIn, shownName } from "../../text/named.js";

/** Of which type the value of a comparison is. */
export const TYPES = [
  { id: "text", title: "text" },
  { id: "number", title: "number" },
  { id: "yes", title: "true, false" },
  { id: "null", title: "null" },
  { id: "list", title: "list" },
  { id: "now", title: "the time now" },
  { id: "json", title: "JSON" },
] as const;

/** The name of a type. */
export type Type = (typeof TYPES)[number]["id"];

/** One comparison as it is typed. */
export interface Line {
  readonly field: string;
  readonly op: Operator;
  readonly type: Type;
  readonly value: string;
}

/** What was typed. */
export interface Draft {
  /** As prefixes are shown. */
  readonly prefix: string;
  /** Whether all of the comparisons have to hold, or any of them. */
  readonly match: "all" | "any";
  readonly lines: readonly Line[];
  /** Fields, apart by commas. */
  readonly order: string;
}

/** A search that can be made. */
export interface Sought {
  readonly prefix: string;
  readonly match: "all" | "any";
  readonly conditions: readonly Condition[];
  readonly orderBy: readonly string[];
}

/** A comparison that nothing was typed in. */
export const EMPTY_LINE: Line = { field: "", op: "eq", type: "text", value: "" };

/** So much of a value stands in a sentence. */
const PREVIEW = 60;
const NOW = '{"now":true}';
/** Operators that take several values. */
const LISTS: readonly Operator[] = ["in", "nin", "between"];

/** Whether this operator takes a value. */
export function takesValue(op: Operator): boolean {
  return op !== "exists" && op !== "nexists";
}

/** A line with another operator, and the type that goes with it. */
export function withOperator(line: Line, op: Operator): Line {
  const isList = LISTS.includes(op);
  const type = isList && line.type !== "json" ? "list" : !isList && line.type === "list" ? "text" : line.type;
  return { ...line, op, type };
}

/** The comparison, or what is missing in it. */
export function conditionOf({ field, op, type, value }: Line): Condition | string {
  const name = field.trim();
  if (name === "") {
    return "Name the field: status, customer.city, $key.";
  }
  if (!takesValue(op)) {
    return { field: name, op };
  }
  const json = jsonOf(name, type, value);
  return json === undefined ? `${name}: ${WANTED[type]}.` : { field: name, op, value: new JsonText(json) };
}

const WANTED: Record<Type, string> = {
  text: "type a text",
  number: "type a number",
  yes: "type true or false",
  null: "null takes no text",
  list: "type values, apart by commas",
  now: "the time takes no text",
  json: "type JSON",
};

function jsonOf(field: string, type: Type, value: string): string | undefined {
  const json = parsed(value.trim());
  switch (type) {
    case "text":
      return wordValue(field, value).text;
    case "number":
      return json?.kind === "number" ? value.trim() : undefined;
    case "yes":
      return /^\s*(true|false)\s*$/.test(value) ? value.trim() : undefined;
    case "null":
      return "null";
    case "now":
      return NOW;
    case "list":
      return value.trim() === ""
        ? undefined
        : `[${value
            .split(",")
            .map((word) => itemOf(field, word))
            .join(",")}]`;
    case "json":
      return json && storedJson(json);
  }
}

function parsed(text: string): Json | undefined {
  try {
    return scanJson(text);
  } catch {
    return undefined;
  }
}

/** An item of a list: JSON as it is, any other word as a string, or as a key. */
function itemOf(field: string, typed: string): string {
  const word = typed.trim();
  const json = parsed(word);
  return json !== undefined && json.kind !== "object" ? compactJson(json) : wordValue(field, word).text;
}

/** The comparison as somebody would type it. */
export function lineOf({ field, op, value }: Condition): Line {
  if (value === undefined) {
    return { ...EMPTY_LINE, field, op };
  }
  const { tree } = value;
  const word = wordOf(field, tree);
  if (word !== undefined && wordValue(field, word).text === value.text) {
    return { field, op, type: "text", value: word };
  }
  switch (tree.kind) {
    case "number":
      return { field, op, type: "number", value: value.text };
    case "word":
      return tree.word === "null"
        ? { field, op, type: "null", value: "" }
        : { field, op, type: "yes", value: tree.word };
    default:
      return structuredLine(field, op, tree);
  }
}

function structuredLine(field: string, op: Operator, tree: Json): Line {
  const json = compactJson(tree);
  if (json === NOW) {
    return { field, op, type: "now", value: "" };
  }
  const words =
    LISTS.includes(op) && tree.kind === "array" ? tree.items.map((item) => listWord(field, item)) : [];
  return words.length > 0 && words.every((word) => word !== undefined)
    ? { field, op, type: "list", value: words.join(", ") }
    : { field, op, type: "json", value: json };
}

/** An item of a list as a word; `undefined` where it would not stay the same without quotes. */
function listWord(field: string, item: Json): string | undefined {
  const word = wordOf(field, item);
  return word !== undefined && itemOf(field, word) === compactJson(item) && !word.includes(",")
    ? word
    : undefined;
}

/** What is sought, or what is missing. Lines in which nothing was typed are left out. */
export function soughtOf({ prefix, match, lines, order }: Draft): Sought | string {
  const conditions: Condition[] = [];
  for (const line of lines) {
    if (line.field.trim() === "" && line.value === "" && lines.length > 0) {
      continue;
    }
    const condition = conditionOf(line);
    if (typeof condition === "string") {
      return condition;
    }
    conditions.push(condition);
  }
  const orderBy = order
    .split(",")
    .map((field) => field.trim())
    .filter((field) => field !== "");
  return { prefix: keyOfShown(prefix), match, conditions, orderBy };
}

/** What has to hold, as the API takes it. */
export function clausesOf({ match, conditions }: Pick<Sought, "match" | "conditions">): readonly Clause[] {
  return match === "any" && conditions.length > 1 ? [{ any: conditions }] : conditions;
}

/** The search as it stands in the address. */
export function queryOf({ prefix, match, conditions, orderBy }: Sought): Query {
  return { prefix, match, where: conditions.map(wordsOf), order: orderBy.join(",") };
}

/** A comparison as words, as the place Keys has it too; as JSON where the field has a gap in it. */
function wordsOf({ field, op, value }: Condition): string {
  if (/\s/.test(field)) {
    return JSON.stringify([field, op, ...(value === undefined ? [] : [value.text])]);
  }
  return [field, op, ...(value === undefined ? [] : [value.text])].join(" ");
}

function conditionOfWords(words: string): Condition | undefined {
  if (words.startsWith("[")) {
    return conditionOfList(words);
  }
  const condition = parseCondition(words);
  return typeof condition === "string" ? undefined : condition;
}

function conditionOfList(words: string): Condition | undefined {
  try {
    const [field, op, value] = JSON.parse(words) as string[];
    if (typeof field !== "string" || !OPERATORS.includes(op as Operator)) {
      return undefined;
    }
    const json = value === undefined ? undefined : new JsonText(compactJson(scanJson(value)));
    return { field, op: op as Operator, ...(json && { value: json }) };
  } catch {
    // An address that somebody changed by hand.
    return undefined;
  }
}

/** The search of an address; `undefined` where that has none yet. What is no comparison in it is left out. */
export function soughtIn(query: URLSearchParams): Sought | undefined {
  const match = query.get("match");
  if (match === null) {
    return undefined;
  }
  return {
    prefix: nameIn(query, "prefix") ?? "",
    match: match === "any" ? "any" : "all",
    conditions: query.getAll("where").flatMap((words) => conditionOfWords(words) ?? []),
    orderBy: (query.get("order") ?? "").split(",").filter((field) => field !== ""),
  };
}

/** The search as a draft to go on with. */
export function draftOf(sought: Sought | undefined, prefix: string): Draft {
  if (sought === undefined) {
    return { prefix: shownName(prefix), match: "all", lines: [EMPTY_LINE], order: "" };
  }
  const lines = sought.conditions.map(lineOf);
  return {
    prefix: shownName(sought.prefix),
    match: sought.match,
    lines: lines.length === 0 ? [EMPTY_LINE] : lines,
    order: sought.orderBy.join(", "),
  };
}

/** The search in a sentence: `orders/, where status eq "new" and total gt 5`. */
export function sentenceOf({ prefix, match, conditions }: Sought): string {
  const keys = prefix === "" ? "all keys" : `keys that begin with ${shownName(prefix)}`;
  const words = conditions.map((condition) => shownCondition(condition, PREVIEW));
  return words.length === 0 ? keys : `${keys}, where ${words.join(match === "all" ? " and " : " or ")}`;
}
