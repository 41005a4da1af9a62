import { describe, expect, test } from "vitest";
import { JsonText } from "../../api/json-text.js";
import {
  clausesOf,
  conditionOf,
  type Draft,
  draftOf,
  EMPTY_LINE,
  type Line,
  lineOf,
  queryOf,
  sentenceOf,
  soughtIn,
  soughtOf,
  withOperator,
} from "./draft.js";

const line = (op: Line["op"], type: Line["type"], value: string): Line => ({ field: "f", op, type, value });

describe("a comparison", () => {
  test.each([
    [line("eq", "text", "17"), '"17"'],
    [line("eq", "text", ' a "b" '), '" a \\"b\\" "'],
    [line("eq", "number", " 12345678901234567890 "), "12345678901234567890"],
    [line("eq", "number", "1.10"), "1.10"],
    [line("eq", "yes", "true"), "true"],
    [line("eq", "null", ""), "null"],
    [line("lt", "now", ""), '{"now":true}'],
    [line("in", "list", "new, paid,17"), '["new","paid",17]'],
    [line("eq", "json", '{"a": [1, 2.0]}'), '{"a":[1,2.0]}'],
  ] as const)("%j has the value %s", (line, json) => {
    expect(conditionOf(line)).toEqual({ field: "f", op: line.op, value: new JsonText(json) });
  });

  test.each([
    line("eq", "text", "new"),
    line("eq", "number", "1.10"),
    line("neq", "yes", "false"),
    line("eq", "null", ""),
    line("lte", "now", ""),
    line("in", "list", "new, paid"),
    line("eq", "json", '{"a":[1,2.0]}'),
    line("exists", "text", ""),
  ])("%j comes back as it was typed", (line) => {
    const condition = conditionOf(line);
    expect(typeof condition === "string" ? condition : lineOf(condition)).toEqual(line);
  });

  test.each([
    [{ ...EMPTY_LINE, value: "x" }, /field/],
    [line("eq", "number", "many"), /number/],
    [line("eq", "number", '"1"'), /number/],
    [line("eq", "yes", "maybe"), /true or false/],
    [line("in", "list", " "), /commas/],
    [line("eq", "json", "{"), /JSON/],
  ])("%j says what is missing", (line, words) => {
    expect(conditionOf(line)).toMatch(words);
  });

  test("an operator brings the type of its value", () => {
    expect(withOperator(line("eq", "text", "a"), "in").type).toBe("list");
    expect(withOperator(line("in", "list", "a"), "gt").type).toBe("text");
    expect(withOperator(line("eq", "number", "1"), "lt").type).toBe("number");
  });
});

describe("a comparison of keys", () => {
  const key = (op: Line["op"], type: Line["type"], value: string): Line => ({
    field: "$key",
    op,
    type,
    value,
  });

  test.each([
    [key("eq", "text", "ll/a"), '"ll/a"'],
    [key("eq", "text", "ll/\\xff"), '{"base64":"bGwv/w=="}'],
    [key("eq", "text", "ll/\\x5cxff"), '"ll/\\\\xff"'],
    [key("eq", "text", "a\\xe2\\x80\\x8b"), '"a\\u200b"'],
    [key("eq", "text", "17"), '"17"'],
    [key("in", "list", "ll/\\xff, ll/\\x5cxff, a"), '[{"base64":"bGwv/w=="},"ll/\\\\xff","a"]'],
    [key("eq", "json", '{"base64":"YQ=="}'), '{"base64":"YQ=="}'],
    [{ ...key("eq", "text", "ll/\\xff"), field: "path" }, '"ll/\\\\xff"'],
    [{ ...key("eq", "text", "ll/\\x5cxff"), field: "path" }, '"ll/\\\\x5cxff"'],
  ] as const)("%j has the value %s, and comes back", (line, json) => {
    const condition = conditionOf(line);
    expect(condition).toEqual({ field: line.field, op: line.op, value: new JsonText(json) });
    expect(typeof condition === "string" ? condition : lineOf(condition)).toEqual(line);
  });

  test("is shown as it is typed, and so is the prefix", () => {
    const draft = {
      prefix: "ll/\\xff",
      match: "all",
      lines: [key("eq", "text", "ll/\\xff")],
      order: "",
    } as const;
    const sought = soughtOf(draft);
    if (typeof sought === "string") {
      throw new Error(sought);
    }
    expect(sought.prefix).toBe("ll/\udcff");
    expect(sentenceOf(sought)).toBe("keys that begin with ll/\\xff, where $key eq ll/\\xff");
    expect(draftOf(sought, "")).toEqual(draft);
    expect(draftOf(undefined, "a\u200b").prefix).toBe("a\\xe2\\x80\\x8b");
  });
});

describe("a search", () => {
  const DRAFT: Draft = {
    prefix: "orders/ä &",
    match: "any",
    lines: [
      { field: "status", op: "eq", type: "text", value: "it's paid" },
      { field: "/a b", op: "gt", type: "number", value: "12345678901234567890" },
      { field: "note", op: "nexists", type: "text", value: "" },
      EMPTY_LINE,
    ],
    order: " -total, name ",
  };

  test("stands in the address, and comes back from it", () => {
    const sought = soughtOf(DRAFT);
    if (typeof sought === "string") {
      throw new Error(sought);
    }
    const query = new URLSearchParams(
      Object.entries(queryOf(sought)).flatMap(([name, values]) =>
        [values ?? []].flat().map((value): [string, string] => [name, value]),
      ),
    );
    expect(soughtIn(query)).toEqual(sought);
    expect(draftOf(soughtIn(query), "")).toEqual({
      ...DRAFT,
      lines: DRAFT.lines.slice(0, 3),
      order: "-total, name",
    });
  });

  test("all of it holds by itself, any of it as one clause", () => {
    const sought = soughtOf(DRAFT);
    if (typeof sought === "string") {
      throw new Error(sought);
    }
    expect(clausesOf(sought)).toEqual([{ any: sought.conditions }]);
    expect(clausesOf({ ...sought, match: "all" })).toEqual(sought.conditions);
    expect(sentenceOf(sought)).toMatch(
      /^keys that begin with orders\/ä &, where status eq "it's paid" or \/a b gt/,
    );
  });

  test("an address without one begins anew, and what is broken in it is left out", () => {
    expect(soughtIn(new URLSearchParams())).toBeUndefined();
    expect(draftOf(undefined, "orders/")).toEqual({
      prefix: "orders/",
      match: "all",
      lines: [EMPTY_LINE],
      order: "",
    });
    const broken = new URLSearchParams([
      ["match", "all"],
      ["where", "status is new"],
      ["where", "[1,2]"],
      ["where", '["a b","eq"'],
      ["where", "n exists"],
    ]);
    expect(soughtIn(broken)?.conditions).toEqual([{ field: "n", op: "exists" }]);
  });
});
