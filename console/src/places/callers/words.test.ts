import { expect, test } from "vitest";
import { amountOf, type Caller, chosen, fillOf, kindOf, type Resource, waitsOf, wordsOf } from "./words.js";

function resource(
  name: string,
  taken: number,
  bound: number,
  callers: readonly Caller[] = [{ kind: "user", name: "shop", held: taken }],
): Resource {
  const of = { resource: name as Resource["resource"], callers: [...callers] };
  return { ...of, taken, bound, share: bound / 4, refused: 0, shareRefused: 0 };
}

test("amounts are in the unit of their resource", () => {
  expect(amountOf(resource("bodies", 0, 4), 67_108_864)).toBe("64.0 MiB");
  expect(amountOf(resource("waits", 0, 4), 1)).toBe("1 request");
  expect(amountOf(resource("connections", 0, 4), 1024)).toBe("1\u202f024 connections");
  expect(amountOf(resource("processors", 0, 1000), 350)).toBe("350 ms");
});

test("how many wait for the processors is told while they do or the node is late", () => {
  const processors = resource("processors", 350, 1000);
  expect(waitsOf({ ...processors, heldUp: 1, late: true })).toBe(
    "The threads of the node are late, and 1 connection or request is held up.",
  );
  expect(waitsOf({ ...processors, heldUp: 2, late: false })).toBe(
    "The threads of the node are not late, and 2 connections and requests are held up.",
  );
  expect(waitsOf({ ...processors, heldUp: 0, late: false })).toBeUndefined();
  expect(waitsOf(resource("waits", 1, 4))).toBeUndefined();
});

test("a resource of a newer node is shown by its name", () => {
  const newer = resource("snapshots", 1, 4);
  expect(wordsOf(newer).title).toBe("snapshots");
  expect(amountOf(newer, 1500)).toBe("1\u202f500");
});

test("a resource that fills up is marked, and one of which there is nothing is not", () => {
  expect(fillOf(resource("bodies", 79, 100))).toEqual({ tone: "quiet", text: "79 %" });
  expect(fillOf(resource("bodies", 80, 100))).toEqual({ tone: "bad", text: "80 %" });
  expect(fillOf(resource("bodies", 0, 0))).toEqual({ tone: "quiet", text: "0 %" });
});

test("every kind of account has words", () => {
  const kinds = ["user", "address", "local_user", "strangers"] as const;
  const words = kinds.map((kind) => kindOf({ kind, held: 1 }));
  expect(new Set(words).size).toBe(kinds.length);
  expect(words.every((word) => word.length > 0)).toBe(true);
});

test("the accounts of the resource asked for are shown, else those of the fullest", () => {
  const all = [resource("waits", 90, 100, []), resource("bodies", 10, 100), resource("answers", 30, 100)];
  expect(chosen(all, "waits")?.resource).toBe("waits");
  expect(chosen(all, "")?.resource).toBe("answers");
  expect(chosen(all, "nonsense")?.resource).toBe("answers");
  expect(chosen([resource("waits", 0, 100, [])], "")).toBeUndefined();
  // What is given stays as it is.
  expect(all.map((one) => one.resource)).toEqual(["waits", "bodies", "answers"]);
});
