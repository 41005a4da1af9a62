import type { CollectionInfo } from "quorate";
import { expect, test } from "vitest";
import { rulesOf } from "./rules.js";

const said = (rules: CollectionInfo["rules"]) =>
  rulesOf({ rules }).map(({ field, words }) => `${field ?? "all"}: ${words}`);

test("each rule has its words", () => {
  expect(said({})).toEqual([]);
  expect(
    said({
      preconditionRequired: true,
      required: ["status", "note"],
      fields: {
        status: { type: "varchar", max: 20, default: "new" },
        number: { type: "long", sequence: "orders" },
        at: { type: "datetime", autoUpdate: true },
      },
    }),
  ).toEqual([
    "all: a write has to say what it expects",
    "at: datetime, set anew by each write",
    "note: any, required",
    "number: long, numbered by the sequence orders",
    "status: varchar, at most 20, required, has a default",
  ]);
});
