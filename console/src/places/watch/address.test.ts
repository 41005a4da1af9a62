import { expect, test } from "vitest";
import { JsonText } from "../../api/json-text.js";
import { queryOf, type Wish, watchedOf, wishOf } from "./address.js";

const ALL: Wish = { isKey: false, text: "", events: "", where: [], part: "", from: "" };

test.each<[string, Wish]>([
  ["", ALL],
  ["key=a%2Fb", { ...ALL, isKey: true, text: "a/b" }],
  [
    "prefix=a&events=put&where=n%20eq%201&where=m%20exists&part=1%2F4&from=17",
    { ...ALL, text: "a", events: "put", where: ["n eq 1", "m exists"], part: "1/4", from: "17" },
  ],
])("the address %j says it, and it the address", (query, wish) => {
  expect(wishOf(new URLSearchParams(query))).toEqual(wish);
  const params = Object.entries(queryOf(wish)).flatMap(([name, value]) =>
    [value ?? []].flat().map((one) => [name, one] as [string, string]),
  );
  const again = new URLSearchParams(params.filter(([, value]) => value !== ""));
  expect(wishOf(again)).toEqual(wish);
});

test("what is asked of the cluster", () => {
  expect(watchedOf(ALL)).toEqual({ prefix: "", where: [] });
  expect(
    watchedOf({ isKey: true, text: "a", events: "delete", where: ["n eq 1"], part: "0/2", from: "17" }),
  ).toEqual({
    key: "a",
    events: "delete",
    where: [{ field: "n", op: "eq", value: new JsonText("1") }],
    part: { index: 0, of: 2 },
    from: "17",
  });
});

test.each<Partial<Wish>>([
  { part: "2/2" },
  { part: "1" },
  { part: "a/b" },
  { from: "x" },
  { where: ["n is 1"] },
])("says what is wrong with %j", (wish) => {
  expect(typeof watchedOf({ ...ALL, ...wish })).toBe("string");
});
