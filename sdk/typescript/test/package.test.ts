/** What the package promises of itself: its types are those of the API, and its entry point runs everywhere. */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import ts from "typescript";
import type {
  Camel,
  ClaimAnswer,
  DeleteEvent,
  Entry,
  Problem,
  PutEvent,
  Txn,
  TxnAnswer,
  Wire,
  WriteResult,
} from "../src/index.js";
import { PACKAGE } from "./support.js";

/** Holds where every field of the wire is known here, and none is made up. */
type Same<Here, OnWire> = [Exclude<keyof Here, keyof OnWire>, Exclude<keyof OnWire, keyof Here>] extends [
  never,
  never,
]
  ? true
  : never;
type WithoutBase64<T> = Omit<T, "valueBase64">;
type Problems = Omit<Camel<Wire["Problem"]>, "type">;

const same: true[] = [
  true satisfies Same<Entry, WithoutBase64<Camel<Wire["EntryView"]>>>,
  true satisfies Same<WriteResult, Camel<Wire["WriteAnswer"]>>,
  true satisfies Same<Problem, Problems>,
  true satisfies Same<ClaimAnswer, Camel<Wire["ClaimAnswer"]>>,
  true satisfies Same<TxnAnswer, Camel<Wire["TxnAnswer"]>>,
  true satisfies Same<Txn, Omit<Camel<Wire["TxnRequest"]>, "dryRun" | "requestId">>,
  true satisfies Same<Record<keyof PutEvent | keyof DeleteEvent, unknown>, Camel<Wire["WatchEvent"]>>,
];

test("hand-shaped types have the fields of the wire", () => assert.ok(same.every((holds) => holds)));

test("the types of the wire are those of docs/openapi.json", () => {
  const made = spawnSync(process.execPath, [join(PACKAGE, "scripts/generate.mjs"), "--check"], {
    encoding: "utf8",
  });
  assert.equal(made.status, 0, made.stderr);
});

/** All files that this one imports, directly or not; fails on what is no file of the package. */
function imports(file: string, known = new Set<string>()): Set<string> {
  if (known.has(file)) {
    return known;
  }
  known.add(file);
  for (const [, path = ""] of readFileSync(file, "utf8").matchAll(/(?:from|import\()\s*"([^"]+)"/g)) {
    assert.match(path, /^\.{1,2}\//, `${file} imports ${path}`);
    imports(join(dirname(file), path), known);
  }
  return known;
}

test("the entry point imports nothing of Node, and no other package", () => {
  assert.ok(imports(join(PACKAGE, "dist/index.js")).size > 20);
});

/** Members whose names say all. */
const PLAIN = ["name", "next", "return", "prefix", "id", "parties", "key", "value", "maxAttempts"];

/** Public members of a class or an interface that should have a word of documentation. */
function members(exported: ts.Symbol): ts.Symbol[] {
  const declaration = exported.declarations?.find(
    (found) => ts.isClassDeclaration(found) || ts.isInterfaceDeclaration(found),
  );
  const symbols = declaration === undefined ? [] : [...(exported.members?.values() ?? [])];
  const ofClass = symbols.filter((member) => !(member.flags & ts.SymbolFlags.TypeParameter));
  return ofClass.filter((member) => /^[a-z]\w*$/i.test(member.name) && !PLAIN.includes(member.name));
}

/** What an entry point exports and nothing says what it is for. */
function bare(program: ts.Program, entry: string): string[] {
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(entry);
  const symbol = source && checker.getSymbolAtLocation(source);
  assert.ok(symbol, entry);
  const exported = checker.getExportsOfModule(symbol).map((found) => {
    return found.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(found) : found;
  });
  const all = exported.flatMap((found) => [found, ...members(found)]);
  return all
    .filter((found) => found.getDocumentationComment(checker).length === 0)
    .map((found) => found.name);
}

test("everything public has a word of documentation", () => {
  const entries = ["index", "node/index", "node/testing"].map((name) => join(PACKAGE, `dist/${name}.d.ts`));
  const { NodeNext } = ts.ModuleKind;
  const program = ts.createProgram(entries, {
    module: NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
  });
  assert.deepEqual(
    entries.flatMap((entry) => bare(program, entry)),
    [],
  );
});
