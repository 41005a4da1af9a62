import { expect, test } from "vitest";
import { buttonsOf } from "./draft.js";

test("each button says what is being done by it, and nothing of the other", () => {
  expect(buttonsOf(undefined, false)).toEqual({ save: "Save", delete: "Delete" });
  expect(buttonsOf(undefined, true)).toEqual({ save: "Create", delete: "Delete" });
  expect(buttonsOf("save", false)).toEqual({ save: "Saving …", delete: "Delete" });
  expect(buttonsOf("save", true)).toEqual({ save: "Saving …", delete: "Delete" });
  expect(buttonsOf("delete", false)).toEqual({ save: "Save", delete: "Deleting …" });
});
