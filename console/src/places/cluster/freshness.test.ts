import type { Members, Status } from "quorate";
import { expect, test } from "vitest";
import {
  adviceOnRefusal,
  type Freshness,
  headlineOf,
  heardOf,
  OLD_MS,
  refusalOf,
  together,
  toneOf,
  whyItCannotLead,
} from "./freshness.js";

type Member = Members["members"][number];

const NEW: Freshness = { ageMs: 2_000, hasFailed: false };
const OLD: Freshness = { ageMs: 12_345, hasFailed: false };
const FAILED: Freshness = { ageMs: 700, hasFailed: true };

const member = (id: number, about: Partial<Member> = {}): Member => ({
  id,
  role: "voter",
  leader: id === 1,
  healthy: true,
  lag: 0,
  lastContactMs: 6,
  peerAddr: `10.0.0.${id}:7200`,
  clientAddr: `10.0.0.${id}:7100`,
  ...about,
});
const members = (...all: Member[]): Members => ({
  leaderId: 1,
  changing: false,
  needed: 2,
  prospect: "",
  members: all,
});
const THREE = members(member(1), member(2), member(3));
// Of a status only this is in the sentence.
const STATUS = { nodeId: 2, leaderId: 1 } as Status;
const LEADERLESS = { nodeId: 2 } as Status;

test("a card is green only while what it shows is new", () => {
  expect(headlineOf(STATUS, THREE, NEW)).toEqual({
    tone: "good",
    leader: "Node 1 leads",
    voters: ", 3 of 3 voters heard of, one more may fail",
    old: undefined,
  });
  expect(headlineOf(STATUS, THREE, { ageMs: OLD_MS, hasFailed: false }).tone).toBe("good");
  for (const [freshness, said] of [
    [{ ageMs: OLD_MS + 1, hasFailed: false }, /^That was 5 s ago, and nothing newer came/],
    [OLD, /^That was 12 s ago/],
    [FAILED, /^That was 700 ms ago/],
  ] as const) {
    const headline = headlineOf(STATUS, THREE, freshness);
    expect(headline.tone).toBe("warn");
    expect(headline.old).toMatch(said);
  }
});

test("what is bad stays bad when it is old", () => {
  const two = members(member(1), member(2, { healthy: false }), member(3, { healthy: false }));
  expect(headlineOf(STATUS, two, OLD).tone).toBe("bad");
  expect(headlineOf(LEADERLESS, undefined, OLD)).toMatchObject({
    tone: "bad",
    leader: "No leader",
    voters: "",
  });
  const tight = members(member(1), member(2), member(3, { healthy: false }));
  expect(headlineOf(STATUS, tight, NEW).tone).toBe("warn");
});

test("several answers are as fresh as the oldest of them", () => {
  expect(together([NEW, OLD])).toEqual(OLD);
  expect(together([FAILED, OLD])).toEqual({ ageMs: 12_345, hasFailed: true });
});

test("when a member was heard of grows old with what says it", () => {
  expect(heardOf(member(2), NEW)).toBe("6 ms ago");
  expect(heardOf(member(2), OLD)).toBe("12 s ago");
  expect(heardOf(member(1), NEW)).toBe("leads");
  expect(heardOf(member(1), OLD)).toBe("led 12 s ago");
  const unsaid = member(2);
  delete (unsaid as { lastContactMs?: number }).lastContactMs;
  expect(heardOf(unsaid, NEW)).toBe("yes");
  expect(heardOf(unsaid, OLD)).toBe("12 s ago");
  expect(heardOf({ ...unsaid, healthy: false }, OLD)).toBe("not heard of");
  expect([
    toneOf(member(2), NEW),
    toneOf(member(2), OLD),
    toneOf(member(2, { healthy: false }), OLD),
  ]).toEqual(["good", "warn", "bad"]);
});

test("who is not heard of cannot lead, and it is said why", () => {
  expect(whyItCannotLead(member(2), NEW)).toBeUndefined();
  expect(whyItCannotLead(member(2, { healthy: false }), NEW)).toMatch(/not heard of/);
  expect(whyItCannotLead(member(2), OLD)).toMatch(/not known/);
  expect(whyItCannotLead(member(2), FAILED)).toMatch(/not known/);
});

test("a refusal proposes what the console has", () => {
  const detail =
    "that would leave 2 of 2 voters (1, 2) heard of, 2 needed, one failure from loss; add a voter first, or force it";
  expect(refusalOf(detail)).toBe(detail.slice(0, -", or force it".length));
  const advice = adviceOnRefusal({ code: "change_refused", detail }, "quorate member remove 3");
  expect(advice).toMatch(/`Give a vote`.*forces nothing.*quorate member remove 3 --force$/);
  const split = "no majority to tell who is right; repair node 3 first, or force it";
  expect(adviceOnRefusal({ code: "change_refused", detail: split }, "quorate member remove 3")).toBe(
    "The console forces nothing. The command line does: quorate member remove 3 --force",
  );
  expect(adviceOnRefusal({ code: "change_refused", detail: "it is the last voter" }, "")).toBeUndefined();
  expect(adviceOnRefusal({ code: "internal", detail }, "")).toBeUndefined();
});
