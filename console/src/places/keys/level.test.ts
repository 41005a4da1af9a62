import { expect, test } from "vitest";
import { endOfPrefix } from "../../api/keys.js";
import { aboutOf, type LevelPage, type Listed, levelOf, type Node } from "./level.js";
import { Tree } from "./tree.js";

/** Entries of these keys. */
const listed = (...keys: readonly string[]) =>
  keys.map((key): Listed => ({ key, version: 1, contentType: "json" }));

/** Reads a level of these keys, so many at a time, and counts how often it asks. */
function reader(keys: readonly string[], limit: number, delimiter = "/") {
  const sorted = [...keys].sort();
  const asked: string[] = [];
  const read = async (prefix: string, from: string): Promise<LevelPage> => {
    asked.push(from);
    const found = sorted.filter((key) => key.startsWith(prefix) && key >= from);
    return levelOf(prefix, delimiter, {
      entries: listed(...found.slice(0, limit)),
      hasMore: found.length > limit,
    });
  };
  return { read, asked };
}

async function whole(
  prefix: string,
  read: (prefix: string, from: string) => Promise<LevelPage>,
): Promise<Node[]> {
  const nodes: Node[] = [];
  for (let from: string | undefined = prefix; from !== undefined; ) {
    const page: LevelPage = await read(prefix, from);
    nodes.push(...page.nodes);
    from = page.next;
  }
  return nodes;
}

test("a level has parts and entries in order, each once", async () => {
  const { read } = reader(["a/1", "a/2/x", "a/2/y", "a/3", "b", "b/1", "c/"], 2);
  const names = (await whole("", read)).map(({ kind, name }) => `${kind} ${name}`);
  expect(names).toEqual(["part a/", "entry b", "part b/", "part c/"]);
  expect((await whole("a/", read)).map(({ name }) => name)).toEqual(["1", "2/", "3"]);
});

test("a part costs one request, whatever is in it", async () => {
  const many = Array.from({ length: 50_000 }, (_, n) => `many/${String(n).padStart(6, "0")}`);
  const { read, asked } = reader([...many, "other", "zeta/1"], 1_000);
  expect((await whole("", read)).map(({ key }) => key)).toEqual(["many/", "other", "zeta/"]);
  expect(asked).toEqual(["", "many0"]);
});

test("a prefix may end within a character", () => {
  const page = { entries: listed("ü", "ü/a", "ü/b", "\u{e0}/c"), hasMore: false };
  expect(levelOf("\udcc3", "/", page).nodes).toEqual([
    { kind: "entry", key: "ü", name: "\udcbc", entry: listed("ü")[0] },
    { kind: "part", key: "ü/", name: "\udcbc/" },
    { kind: "part", key: "à/", name: "\udca0/" },
  ]);
  const smile = { entries: listed("\u{1f600}/a"), hasMore: false };
  expect(levelOf("\udcf0\udc9f\udc98", "/", smile).nodes).toEqual([
    { kind: "part", key: "\u{1f600}/", name: "\udc80/" },
  ]);
});

test("the end of a prefix is behind all keys that begin so", () => {
  expect(endOfPrefix("orders/")).toBe("orders0");
  expect(endOfPrefix("a\u{10ffff}")).toBe("b");
  expect(endOfPrefix("\u{10ffff}")).toBeUndefined();
  expect(endOfPrefix("\ud7ff")).toBe("\ue000");
  expect(endOfPrefix("")).toBeUndefined();
});

test("a tree opens, closes and reads on", async () => {
  const { read, asked } = reader(["a/b/1", "a/b/2", "a/c", "d", "e", "f"], 2);
  const tree = new Tree("", read);
  await tree.start();
  const names = () =>
    tree.rows.value.map((row) => (row.kind === "node" ? `${row.depth} ${row.node.name}` : row.kind));
  expect(names()).toEqual(["0 a/", "more"]);
  await tree.open("a/");
  await tree.open("a/b/");
  expect(names()).toEqual(["0 a/", "1 b/", "2 1", "2 2", "more", "more"]);
  await tree.more("a/");
  await tree.more("");
  await tree.more("");
  expect(names()).toEqual(["0 a/", "1 b/", "2 1", "2 2", "1 c", "0 d", "0 e", "0 f"]);
  tree.close("a/");
  expect(names()).toEqual(["0 a/", "0 d", "0 e", "0 f"]);
  const before = asked.length;
  await tree.more("");
  expect(asked).toHaveLength(before);
});

test("a level that cannot be read says so in its row, and can be tried again", async () => {
  let isBroken = true;
  const { read } = reader(["a"], 10);
  const tree = new Tree("", async (prefix, from) => {
    if (isBroken) {
      throw new Error("no answer");
    }
    return read(prefix, from);
  });
  await tree.start();
  expect(tree.rows.value.map((row) => row.kind)).toEqual(["error"]);
  isBroken = false;
  await tree.more("");
  expect(tree.rows.value.map((row) => row.kind)).toEqual(["node"]);
});

test("an entry in the tree says what is worth a word", () => {
  const [entry] = listed("k") as [Listed];
  expect(aboutOf(entry)).toBe("version 1");
  expect(
    aboutOf({ ...entry, version: 1_200, contentType: "bytes", ttlMs: 7_200_000, locked: true, session: "9" }),
  ).toBe("bytes · locked · session 9 · 2 h left · version 1\u202f200");
});
