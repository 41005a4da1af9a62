import { expect, test } from "vitest";
import { Rate, Ring } from "./ring.js";

const all = (ring: Ring<number>) => Array.from({ length: ring.length }, (_, place) => ring.at(place));

test("keeps the last ones, the newest first, and counts what it let go", () => {
  const ring = new Ring<number>(3, 1_000, () => 1);
  for (let n = 1; n <= 1_000; n += 1) {
    ring.push(n);
    expect(ring.length).toBe(Math.min(n, 3));
    expect(ring.at(0)).toBe(n);
    expect(ring.dropped).toBe(Math.max(0, n - 3));
  }
  expect(all(ring)).toEqual([1_000, 999, 998]);
  expect(ring.snapshot()).toEqual([1_000, 999, 998]);
  expect(ring.at(3)).toBeUndefined();
});

test("keeps no more than so heavy, but the newest in any case", () => {
  const ring = new Ring<number>(100, 10, (weight) => weight);
  [4, 4, 4].map((weight) => ring.push(weight));
  expect([ring.length, ring.dropped]).toEqual([2, 1]);
  ring.push(50);
  expect([all(ring), ring.dropped]).toEqual([[50], 3]);
  ring.push(1);
  expect([all(ring), ring.dropped]).toEqual([[1], 4]);
});

test("begins anew once it is cleared", () => {
  const ring = new Ring<number>(2, 10, () => 1);
  [1, 2, 3].map((item) => ring.push(item));
  ring.clear();
  expect([ring.length, ring.dropped, ring.at(0)]).toEqual([0, 0, undefined]);
  ring.push(4);
  expect(all(ring)).toEqual([4]);
});

test("a rate is that of the last whole seconds, and falls to nothing", () => {
  const rate = new Rate();
  const start = 1_700_000_000_000;
  for (let ms = 0; ms < 10_000; ms += 10) {
    rate.note(start + ms);
  }
  expect(rate.perSecond(start + 10_000)).toBe(100);
  expect(rate.perSecond(start + 12_500)).toBe(60);
  expect(rate.perSecond(start + 20_000)).toBe(0);
});
