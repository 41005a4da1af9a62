import { expect, test } from "vitest";
import { endOfPrefix } from "../api/keys.js";
import { keyMember, keyWord } from "../api/literals.js";
import { nameIn, parameterOf } from "./named.js";

test("a key that is no text stands in an address, a body and a command as itself", () => {
  for (const key of ["a/\udcff", "a/\ufffd", "a/\\xff", "ä"]) {
    const query = new URLSearchParams([["key", parameterOf("key", key)]]);
    expect(nameIn(new URLSearchParams(query.toString()), "key")).toBe(key);
  }
  expect(keyMember("key", "a/\udcff")).toBe('"key_base64":"YS//"');
  expect(keyMember("prefix", "a")).toBe('"prefix":"a"');
  expect(keyWord("a/\udcff")).toBe("a/\\xff");
  expect(endOfPrefix("a/\udcfe")).toBe("a/\udcff");
  expect(endOfPrefix("a/\udcff")).toBe("a0");
});
