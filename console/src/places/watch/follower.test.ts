import { type ChangeEvent, QuorateError } from "quorate";
import { expect, test } from "vitest";
import type { Stored } from "../../api/entries.js";
import { JsonText } from "../../api/json-text.js";
import { type ChangeLine, Follower, LINES_MAX, type Open, type Stream } from "./follower.js";

/** A change of a key at a revision. */
function put(revision: number, key = "k", text = "1"): ChangeEvent<Stored> {
  const about = { contentType: "json", cas: "1", createRevision: "1", version: 1 } as const;
  const entry = { key, value: new JsonText(text), modRevision: String(revision), ...about };
  return { type: "put", key, revision: String(revision), entry };
}

function compacted(oldestRevision: string): QuorateError {
  const about = { code: "compacted", detail: "too old", applied: "no", retry: "never" } as const;
  const problem = { ...about, status: 410, title: "Compacted", requestId: "r", oldestRevision };
  return new QuorateError({ ...about, problem });
}

/** A stream of these; an error among them is thrown, `wait` is waited for. */
function stream(steps: readonly (ChangeEvent<Stored> | Error | Promise<void>)[]): Stream {
  let revision: string | undefined;
  async function* all() {
    for (const step of steps) {
      if (step instanceof Error) {
        throw step;
      }
      if (step instanceof Promise) {
        await step;
      } else {
        revision = step.revision;
        yield step;
      }
    }
  }
  return {
    [Symbol.asyncIterator]: all,
    get revision() {
      return revision;
    },
  };
}

/** Opens one stream after the other, and notes from where. */
function opening(streams: readonly (() => Stream)[]): { open: Open; from: (string | undefined)[] } {
  const from: (string | undefined)[] = [];
  const open: Open = async (at) => {
    from.push(at);
    const next = streams[from.length - 1];
    if (next === undefined) {
      throw new Error("no more streams");
    }
    return next();
  };
  return { open, from };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));
const textsOf = (follower: Follower) =>
  follower.lines
    .snapshot()
    .reverse()
    .map((line) => (line.kind === "note" ? line.text : `${line.event.key}@${line.event.revision}`));

test("changes of one revision are one step, and each knows its place in it", async () => {
  const { open } = opening([() => stream([put(1, "a"), put(2, "a"), put(2, "b"), put(2, "c"), put(3, "a")])]);
  const follower = new Follower(open);
  follower.start();
  await settled();
  const places = follower.lines.snapshot().reverse() as ChangeLine[];
  expect(places.map(({ place, step }) => `${place}/${step.size}`)).toEqual([
    "1/1",
    "1/3",
    "2/3",
    "3/3",
    "1/1",
  ]);
  expect(follower.count).toBe(5);
  follower.stop();
});

test("a connection that is taken up again is told, once", async () => {
  let goOn = () => {};
  const wait = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const { open } = opening([() => stream([put(7), wait, put(8)])]);
  const follower = new Follower(open);
  follower.onTry(true);
  follower.start();
  await settled();
  expect(follower.course.value.kind).toBe("live");
  follower.onTry(false);
  follower.onTry(false);
  expect(follower.course.value.kind).toBe("lost");
  follower.onTry(true);
  goOn();
  await settled();
  expect(textsOf(follower)).toEqual([
    "k@7",
    expect.stringMatching(/taken up again after .* right behind revision 7: nothing is missing/),
    "k@8",
  ]);
  follower.stop();
});

test("what was compacted meanwhile is told, and it goes on behind the oldest that can be read", async () => {
  const { open, from } = opening([
    () => stream([put(7), compacted("90")]),
    () => stream([put(91), new Promise(() => {})]),
  ]);
  const follower = new Follower(open);
  follower.start();
  await settled();
  expect(from).toEqual([undefined, "91"]);
  expect(textsOf(follower)).toEqual([
    "k@7",
    expect.stringMatching(/behind revision 7 and before 91 is lost/),
    "k@91",
  ]);
  expect(follower.course.value.kind).toBe("live");
  follower.stop();
});

test("a beginning that was compacted is told, and once, however often it went on meanwhile", async () => {
  const refuse = (oldest: string) => () => {
    throw compacted(oldest);
  };
  const { open, from } = opening([
    refuse("90"),
    refuse("120"),
    () => stream([put(130), new Promise(() => {})]),
  ]);
  const follower = new Follower(open);
  follower.start();
  await settled();
  expect(from).toEqual([undefined, "91", "121"]);
  expect(textsOf(follower)).toEqual([expect.stringMatching(/before revision 121 is lost/), "k@130"]);
  follower.stop();
});

test("what is refused again for the same reason is not asked for for ever", async () => {
  const refuse = () => {
    throw compacted("90");
  };
  const { open, from } = opening([refuse, refuse]);
  const follower = new Follower(open);
  follower.start();
  await settled();
  expect(from).toEqual([undefined, "91"]);
  expect(follower.course.value).toMatchObject({ kind: "failed", error: { code: "compacted" } });
});

test("no more is kept than so many lines, nor than so much of values", async () => {
  const events = Array.from({ length: LINES_MAX + 500 }, (_, n) => put(n + 1));
  const large = JSON.stringify("x".repeat(1_500_000));
  const { open } = opening([() => stream(events)]);
  const follower = new Follower(open);
  follower.start();
  await settled();
  expect([follower.lines.length, follower.lines.dropped, follower.count]).toEqual([
    LINES_MAX,
    500,
    LINES_MAX + 500,
  ]);
  follower.clear();
  expect([follower.lines.length, follower.lines.dropped, follower.count]).toEqual([0, 0, 0]);
  const heavy = new Follower(
    opening([() => stream(Array.from({ length: 40 }, (_, n) => put(n + 1, "k", large)))]).open,
  );
  heavy.start();
  await settled();
  expect(heavy.lines.length).toBeLessThan(20);
  expect(heavy.lines.length + heavy.lines.dropped).toBe(40);
  follower.stop();
  heavy.stop();
});
