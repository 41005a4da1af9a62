import { describe, expect, test } from "vitest";
import { compactJson } from "./format.js";
import { type Merged, merge, pointerOf, type Side, sameJson } from "./merge.js";
import { scanJson } from "./scan.js";

function merged(base: string | undefined, mine: string, theirs: string, choices?: Map<string, Side>): Merged {
  return merge(base === undefined ? undefined : scanJson(base), scanJson(mine), scanJson(theirs), choices);
}

function text({ value }: Merged): string | undefined {
  return value && compactJson(value);
}

describe("merge", () => {
  test("takes changes of different fields together", () => {
    const both = merged('{"a":1,"b":2,"c":3}', '{"a":9,"b":2,"c":3,"new":true}', '{"a":1,"b":8}');
    expect(both.conflicts).toEqual([]);
    expect(text(both)).toBe('{"a":9,"b":8,"new":true}');
  });

  test("goes into objects", () => {
    const both = merged('{"o":{"x":1,"y":2}}', '{"o":{"x":5,"y":2}}', '{"o":{"x":1,"y":6}}');
    expect([text(both), both.conflicts]).toEqual(['{"o":{"x":5,"y":6}}', []]);
  });

  test("is no conflict where both did the same", () => {
    expect(merged('{"a":1}', '{"a":2,"b":[1]}', '{"b":[1],"a":2}').conflicts).toEqual([]);
  });

  test("names the field that both changed, and settles it as was said", () => {
    const [base, mine, theirs] = ['{"s/t":"new","n":1}', '{"s/t":"paid","n":2}', '{"s/t":"lost","n":1}'];
    const both = merged(base, mine, theirs);
    expect(both.conflicts.map(({ path }) => pointerOf(path))).toEqual(["/s~1t"]);
    expect(text(both)).toBe('{"s/t":"lost","n":2}');
    expect(text(merged(base, mine, theirs, new Map([["/s~1t", "mine"]])))).toBe('{"s/t":"paid","n":2}');
  });

  test("takes an array whole", () => {
    const both = merged('{"l":[1,2]}', '{"l":[1,2,3]}', '{"l":[0,1,2]}');
    expect(both.conflicts).toHaveLength(1);
    expect(text(both)).toBe('{"l":[0,1,2]}');
  });

  test("asks where one removed what the other changed", () => {
    const [base, mine, theirs] = ['{"a":1,"b":1}', '{"b":1}', '{"a":2,"b":1}'];
    expect(merged(base, mine, theirs).conflicts).toHaveLength(1);
    expect(text(merged(base, mine, theirs, new Map([["/a", "mine"]])))).toBe('{"b":1}');
  });

  test("merges what both created", () => {
    const both = merged(undefined, '{"a":1,"x":1}', '{"a":1,"y":2}');
    expect([text(both), both.conflicts.length]).toEqual(['{"a":1,"y":2,"x":1}', 0]);
  });

  test("does not take 1 and 1.0, or long numbers that differ in the last digit, for the same", () => {
    expect(sameJson(scanJson("12345678901234567890"), scanJson("12345678901234567891"))).toBe(false);
    expect(sameJson(scanJson("[1,2]"), scanJson("[1,2]"))).toBe(true);
  });
});
