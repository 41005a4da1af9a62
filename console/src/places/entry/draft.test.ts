import { expect, test } from "vitest";
import type { StoredEntry } from "../../api/entries.js";
import { JsonText } from "../../api/json-text.js";
import { scanJson } from "../../json/scan.js";
import { buttonsOf, draftOf, faultOfLife, saveOf, storeOf } from "./draft.js";

test("each button says what is being done by it, and nothing of the other", () => {
  expect(buttonsOf(undefined, false)).toEqual({ save: "Save", delete: "Delete" });
  expect(buttonsOf(undefined, true)).toEqual({ save: "Create", delete: "Delete" });
  expect(buttonsOf("save", false)).toEqual({ save: "Saving …", delete: "Delete" });
  expect(buttonsOf("save", true)).toEqual({ save: "Saving …", delete: "Delete" });
  expect(buttonsOf("delete", false)).toEqual({ save: "Save", delete: "Deleting …" });
});

test("a write keeps the session of the entry and when it expires, on the cas that was read", () => {
  const entry: StoredEntry = {
    key: "k",
    value: new JsonText('{"n":1.50}'),
    contentType: "json",
    cas: "7",
    createRevision: "5",
    modRevision: "7",
    version: 2,
  };
  const saved = (base: StoredEntry | undefined) =>
    saveOf("k", draftOf(base), scanJson('{"n": 2.50}')).http.body;
  expect(saved(entry)).toBe('{"op":"replace","key":"k","value":{"n":2.50},"cas":"7","ttl":"keep"}');
  expect(saved({ ...entry, ttlMs: 900, session: "9" })).toBe(
    '{"op":"replace","key":"k","value":{"n":2.50},"cas":"7","ttl":"keep","session":"9"}',
  );
  expect(saved(undefined)).toBe('{"op":"insert","key":"k","value":{"n":2.50}}');
  expect(storeOf("k", { ...draftOf(undefined), life: "2h" }, Uint8Array.of(255)).http.body).toBe(
    '{"op":"insert","key":"k","value_base64":"/w==","ttl_ms":7200000}',
  );
});

test("a time to live is a span, or nothing at all", () => {
  for (const life of ["", " ", "90s", "1h 30m"]) {
    expect(faultOfLife(life)).toBeUndefined();
  }
  for (const life of ["0s", "soon", "-5s", "5"]) {
    expect(faultOfLife(life)).toMatch(/^Say for how long/);
  }
});
