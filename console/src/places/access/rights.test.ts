import type { Grant } from "quorate";
import { describe, expect, test } from "vitest";
import { administers, near, type Permission, reasons } from "./rights.js";

const grant = (permission: Permission, prefix: string): Grant => ({ permission, prefix });

function may(grants: readonly Grant[], permission: Permission, name: string): boolean {
  return reasons([{ role: "r", grants }], permission, name).length > 0;
}

describe("a grant", () => {
  test("holds for what begins with its prefix, and for nothing beside it", () => {
    const grants = [grant("write", "orders/")];
    expect(may(grants, "write", "orders/1")).toBe(true);
    expect(may(grants, "write", "orders/")).toBe(true);
    expect(may(grants, "write", "orders")).toBe(false);
    expect(may(grants, "write", "orders-old/1")).toBe(false);
    expect(may(grants, "write", "Orders/1")).toBe(false);
    // The first byte of the character.
    expect(may([grant("write", "\udcc3")], "write", "ü")).toBe(true);
  });

  test.each([
    ["read", ["read"]],
    ["write", ["read", "write"]],
    ["lock", ["read", "lock"]],
    ["admin", ["read", "write", "lock", "admin"]],
  ] as const)("of %s allows %j", (permission, allowed) => {
    const all = (["read", "write", "lock", "admin"] as const).filter((wanted) =>
      may([grant(permission, "a/")], wanted, "a/b"),
    );
    expect(all).toEqual(allowed);
  });

  test("of the empty prefix holds for everything; only that of admin administers", () => {
    expect(may([grant("read", "")], "read", "anything")).toBe(true);
    expect(administers([grant("admin", "")])).toBe(true);
    expect(administers([grant("write", ""), grant("admin", "a/")])).toBe(false);
  });
});

test("the roles that allow it are named, and those that are near", () => {
  const sources = [
    { role: "reads", grants: [grant("read", "orders/")] },
    { role: "writes", grants: [grant("write", "orders/new/"), grant("read", "stock/")] },
  ];
  expect(reasons(sources, "write", "orders/new/1")).toEqual([
    { role: "writes", grant: grant("write", "orders/new/") },
  ]);
  expect(reasons(sources, "write", "orders/1")).toEqual([]);
  expect(near(sources, "write", "orders/1").map(({ role }) => role)).toEqual(["reads", "writes"]);
});
