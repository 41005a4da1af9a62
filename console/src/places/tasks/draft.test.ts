import { describe, expect, test } from "vitest";
import { JsonText } from "../../api/json-text.js";
import { EMPTY, taskOf } from "./draft.js";

const DRAFT = { ...EMPTY, queue: "mails" };

describe("a draft", () => {
  test("is a task with all its digits", () => {
    expect(
      taskOf({ ...DRAFT, payload: ' {"n": 12345678901234567890, "x": 1.10} ', maxAttempts: " 3 " }),
    ).toEqual({
      queue: "mails",
      payload: new JsonText('{"n":12345678901234567890,"x":1.10}'),
      id: "",
      timing: { kind: "now" },
      maxAttempts: 3,
    });
  });

  test.each([
    [
      { timing: "delay", span: "10m" },
      { kind: "delay", delayMs: 600_000 },
    ],
    [
      { timing: "every", span: "1h" },
      { kind: "every", everyMs: 3_600_000 },
    ],
    [
      { timing: "at", at: "2026-12-24T19:00:00+01:00" },
      { kind: "at", executeAt: "2026-12-24T18:00:00.000Z" },
    ],
    [
      { timing: "cron", cron: " 0 3 * * * ", zone: "Europe/Berlin" },
      { kind: "cron", cron: "0 3 * * *", zone: "Europe/Berlin" },
    ],
  ] as const)("%j is due by %j", (part, timing) => {
    expect(taskOf({ ...DRAFT, ...part })).toMatchObject({ timing });
  });

  test.each([
    [{ queue: "" }, /queue/],
    [{ payload: "{" }, /no JSON/],
    [{ timing: "delay", span: "soon" }, /how long/],
    [{ timing: "every", span: "" }, /how often/],
    [{ timing: "at", at: "tomorrow" }, /when/],
    [{ timing: "cron", cron: " " }, /pattern/],
    [{ maxAttempts: "many" }, /whole number/],
  ] as const)("%j says what is missing", (part, words) => {
    expect(taskOf({ ...DRAFT, ...part })).toMatch(words);
  });
});
