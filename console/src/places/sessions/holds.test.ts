import { expect, test } from "vitest";
import { JsonText } from "../../api/json-text.js";
import { type Holds, isNamed, labelsOf, summaryOf, unnamed } from "./holds.js";

const NOTHING: Holds = { locks: [], elections: [], barriers: [], keys: [], tasks: [], count: 0 };

test("what hangs on a session is counted by kind", () => {
  expect(summaryOf(NOTHING)).toBe("nothing");
  const holds: Holds = {
    locks: [
      { name: "a", state: "held", token: "4" },
      { name: "b", state: "waiting", place: "7" },
    ],
    elections: [{ name: "e", state: "held", token: "5" }],
    barriers: ["meet"],
    keys: ["x", "y"],
    tasks: ["mail/1"],
    count: 7,
  };
  expect(summaryOf(holds)).toBe("1 lock, 1 leadership, 1 place in a queue, 2 entries, 1 task, 1 barrier");
  expect(unnamed(holds)).toBe(0);
  expect(unnamed({ ...holds, count: 1_007 })).toBe(1_000);
});

test("a session is found by its id, its owner, and its labels", () => {
  const session = { session: "42", owner: "Web-1", labels: { zone: "a" } };
  for (const text of ["42", "web", "ZONE=a", "", " 4 "]) {
    expect(isNamed(session, text), text).toBe(true);
  }
  expect(isNamed(session, "43")).toBe(false);
});

test("a label of any name is a text", () => {
  const labels = { zone: "a", value: new JsonText('"b\\"c"') as unknown as string };
  expect(labelsOf({ labels })).toEqual(["zone=a", 'value=b"c']);
});
