import { expect, test } from "vitest";
import { fileNameOf } from "./file.js";

test("a file is named after the last part of the key, in letters that every system takes", () => {
  expect(fileNameOf("config/shop", true)).toBe("shop.json");
  expect(fileNameOf("config/shop.json", true)).toBe("shop.json");
  expect(fileNameOf("hooks/greet.sh", false)).toBe("greet.sh");
  expect(fileNameOf("a/b/", false)).toBe("b");
  expect(fileNameOf("a/../", false)).toBe("value");
  expect(fileNameOf("x/it's <b>\u202e", false)).toMatch(/^it_s_b_[\w]*$/);
  expect(fileNameOf("\udcff", false)).toBe("_xff");
  expect(fileNameOf("/", true)).toBe("value.json");
});
