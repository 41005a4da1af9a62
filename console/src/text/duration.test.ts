import { expect, test } from "vitest";
import { parseDuration } from "./duration.js";

test.each([
  ["90s", 90_000],
  ["10m", 600_000],
  ["10 min", 600_000],
  ["1h 30m", 5_400_000],
  ["7d", 604_800_000],
  ["1.5s", 1_500],
  ["250ms", 250],
  ["0s", 0],
])("%j is %d ms", (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each(["", " ", "10", "m", "10 years", "1h x", "-5s"])("%j is no span", (text) => {
  expect(parseDuration(text)).toBeUndefined();
});
