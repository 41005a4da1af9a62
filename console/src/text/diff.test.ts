import { expect, test } from "vitest";
import { diffLines, folded } from "./diff.js";
import { random } from "./random.test-support.js";

/** The text before, or after, as the lines of the difference have it. */
function side(lines: ReturnType<typeof diffLines>, without: "added" | "removed"): string {
  return lines
    .filter(({ kind }) => kind !== without)
    .map(({ text }) => text)
    .join("\n");
}

test("a difference has the fewest lines", () => {
  const lines = diffLines("a\nb\nc\nd", "a\nc\nd\ne");
  expect(lines.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    "same a",
    "removed b",
    "same c",
    "same d",
    "added e",
  ]);
});

test("both texts follow from any difference", () => {
  const seed = Date.now() % 2 ** 32;
  const next = random(seed);
  const text = () => Array.from({ length: next(30) }, () => "abcde"[next(5)]).join("\n");
  for (let turn = 0; turn < 2_000; turn += 1) {
    const [before, after] = [text(), text()];
    const lines = diffLines(before, after);
    expect([side(lines, "added"), side(lines, "removed")], `seed ${seed}`).toEqual([before, after]);
  }
});

test("texts with nothing in common do not take for ever", () => {
  const before = Array.from({ length: 20_000 }, (_, n) => `a${n}`).join("\n");
  const after = Array.from({ length: 20_000 }, (_, n) => `b${n}`).join("\n");
  const started = performance.now();
  const lines = diffLines(before, after);
  expect(lines).toHaveLength(40_000);
  expect(performance.now() - started).toBeLessThan(5_000);
});

test("what stayed the same is folded, but for some lines around a change", () => {
  const before = Array.from({ length: 40 }, (_, n) => `${n}`);
  const after = before.with(20, "new");
  const shown = folded(diffLines(before.join("\n"), after.join("\n")));
  expect(
    shown.map((line) => (line.kind === "fold" ? `fold ${line.count}` : `${line.kind} ${line.text}`)),
  ).toEqual([
    "fold 17",
    "same 17",
    "same 18",
    "same 19",
    "removed 20",
    "added new",
    "same 21",
    "same 22",
    "same 23",
    "fold 16",
  ]);
});
