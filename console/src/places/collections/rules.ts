/** The rules of a collection in words, one for each field. Owns the words. */

import type { CollectionInfo } from "quorate";

/** What the rules say of one field, or of all documents. */
export interface Rule {
  /** Absent where it is about the documents as they are. */
  readonly field?: string;
  readonly words: string;
}

/** All rules, those for whole documents first. */
export function rulesOf({ rules }: Pick<CollectionInfo, "rules">): Rule[] {
  const { fields = {}, required = [] } = rules;
  const names = [...new Set([...Object.keys(fields), ...required])].sort();
  return [
    ...(rules.preconditionRequired ? [{ words: "a write has to say what it expects" }] : []),
    ...names.map((field) => ({
      field,
      words: wordsOf(fields[field] ?? {}, required.includes(field)),
    })),
  ];
}

type FieldRule = NonNullable<CollectionInfo["rules"]["fields"]>[string];

function wordsOf(rule: FieldRule, isRequired: boolean): string {
  const words = [
    rule.type ?? "any",
    rule.max === undefined ? undefined : `at most ${rule.max}`,
    isRequired ? "required" : undefined,
    "default" in rule ? "has a default" : undefined,
    rule.sequence === undefined ? undefined : `numbered by the sequence ${rule.sequence}`,
    rule.autoUpdate ? "set anew by each write" : undefined,
  ];
  return words.filter((word) => word !== undefined).join(", ");
}
