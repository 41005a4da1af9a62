// Writes the examples of README.md as programs to test/examples, where tests compile and run them.
//
// A block `ts` that imports is a program; another one is the body of a program that has a `client`. A block `text` after it is what it
// prints, where `…` stands for anything on the line.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const README = new URL("../README.md", import.meta.url);
const OUTPUT = new URL("../test/examples/", import.meta.url);
const BLOCKS = /^```(ts|text)\n(.*?)^```$/gms;
const HEAD = `import { Client, isQuorateError, op, compareRevisions } from "quorate";
void [isQuorateError, op, compareRevisions];
await using client = new Client("127.0.0.1:7101");
`;

rmSync(OUTPUT, { recursive: true, force: true });
mkdirSync(OUTPUT, { recursive: true });
let programs = 0;
for (const [, kind, text] of readFileSync(README, "utf8").matchAll(BLOCKS)) {
  if (kind === "ts") {
    programs += 1;
    writeFileSync(new URL(`example${programs}.ts`, OUTPUT), text.startsWith("import ") ? text : HEAD + text);
  } else {
    writeFileSync(new URL(`example${programs}.txt`, OUTPUT), text);
  }
}
