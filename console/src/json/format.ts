/**
 * JSON as people read it.
 *
 * Owns indentation, one line for what is short, and the escapes for characters that cannot be seen or that turn the direction of text.
 * Digits of numbers and the order of members stay.
 */

import { type Json, JsonFault, scanJson } from "./scan.js";

/** What is no longer than this, with all that is in it scalar, stands on one line. */
const LINE_MAX = 72;

/**
 * Characters that show nothing, or that make other text look like what it is not: controls, marks of direction, spaces of no width.
 * A string of JSON may have them escaped, so nothing is lost.
 */
const UNSEEN =
  /[\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\uffff]/g;

/** Controls, which `JSON.stringify` escapes by itself. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f]/g;

/** The text with what cannot be seen escaped, controls too. */
export function visible(text: string): string {
  return text.replace(CONTROL, escaped).replace(UNSEEN, escaped);
}

/** JSON text with what cannot be seen escaped: outside of strings there is none of it. */
export function escapedJson(text: string): string {
  return text.replace(UNSEEN, escaped);
}

/** A string as JSON, with what cannot be seen escaped. */
export function quoted(value: string): string {
  return JSON.stringify(value).replace(UNSEEN, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The text of a value, indented. */
export function formatJson(value: Json, indent = ""): string {
  if (value.kind !== "object" && value.kind !== "array") {
    return formatScalar(value);
  }
  const parts = partsOf(value);
  const [open, close] = value.kind === "object" ? ["{", "}"] : ["[", "]"];
  if (parts.length === 0) {
    return open + close;
  }
  const isFlat = parts.every((part) => part.value.kind !== "object" && part.value.kind !== "array");
  if (value.kind === "array" && isFlat) {
    const line = parts.map((part) => formatScalar(part.value)).join(", ");
    if (line.length + indent.length <= LINE_MAX) {
      return open + line + close;
    }
  }
  const inner = `${indent}  `;
  const lines = parts.map((part) => inner + part.label + formatJson(part.value, inner));
  return `${open}\n${lines.join(",\n")}\n${indent}${close}`;
}

function partsOf(value: Json): { label: string; value: Json }[] {
  if (value.kind === "object") {
    return value.members.map((member) => ({ label: `${quoted(member.name)}: `, value: member.value }));
  }
  return value.kind === "array" ? value.items.map((item) => ({ label: "", value: item })) : [];
}

function formatScalar(value: Json): string {
  switch (value.kind) {
    case "string":
      return quoted(value.value);
    case "number":
      return value.text;
    case "word":
      return value.word;
    default:
      return compactJson(value);
  }
}

/** The text of a value on one line, without a space. */
export function compactJson(value: Json): string {
  switch (value.kind) {
    case "object":
      return `{${value.members.map((member) => `${quoted(member.name)}:${compactJson(member.value)}`).join(",")}}`;
    case "array":
      return `[${value.items.map(compactJson).join(",")}]`;
    default:
      return formatScalar(value);
  }
}

/** The text of a value as it is stored: nothing escaped that need not be. */
export function storedJson(value: Json): string {
  switch (value.kind) {
    case "object":
      return `{${value.members.map((member) => `${JSON.stringify(member.name)}:${storedJson(member.value)}`).join(",")}}`;
    case "array":
      return `[${value.items.map(storedJson).join(",")}]`;
    case "string":
      return JSON.stringify(value.value);
    default:
      return formatScalar(value);
  }
}

/** The text indented; as it is where it is no JSON. */
export function prettyJson(text: string): string {
  try {
    return formatJson(scanJson(text));
  } catch (error) {
    if (error instanceof JsonFault) {
      return text;
    }
    throw error;
  }
}
