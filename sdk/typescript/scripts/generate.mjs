// Writes the types of the wire, src/generated/api.ts, from docs/openapi.json; with --check, only compares.
//
// Answers other than those of success, and headers, are left out: the client reads them by hand, and they would make the
// declarations six times as long.

import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const SPEC = new URL("../../../docs/openapi.json", import.meta.url);
const OUTPUT = new URL("../src/generated/api.ts", import.meta.url);
const HEAD = `// The types of the wire. Written by \`npm run generate\` from docs/openapi.json; not to be changed by hand.

`;

/** Fields of names: here a name is one field, whatever it is on the wire. */
const NAMES = ["key", "prefix", "name", "keys"];

/** Makes one field of a name and of its form in base64. */
function joinNames(schema) {
  for (const name of NAMES) {
    const encoded = schema.properties?.[`${name}_base64`];
    if (encoded !== undefined) {
      delete schema.properties[`${name}_base64`];
      if (encoded["x-instead-of"] === name) {
        schema.required = [...(schema.required ?? []), name];
      }
    }
  }
}

/** The document without what the client does not read by these types. */
function slim(document) {
  for (const path of Object.values(document.paths)) {
    for (const operation of Object.values(path)) {
      operation.parameters = operation.parameters?.filter((parameter) => parameter.in === "query");
      const good = Object.entries(operation.responses).filter(([status]) => status.startsWith("2"));
      operation.responses = Object.fromEntries(
        good.map(([status, { headers: _, ...response }]) => [status, response]),
      );
    }
  }
  Object.values(document.components.schemas).forEach(joinNames);
  document.components = { schemas: document.components.schemas };
  return document;
}

const document = slim(JSON.parse(await readFile(SPEC, "utf8")));
const text = HEAD + astToString(await openapiTS({ info: { title: "Quorate", version: "1" }, ...document }));
if (process.argv.includes("--check")) {
  if ((await readFile(OUTPUT, "utf8")) !== text) {
    console.error("src/generated/api.ts is not what docs/openapi.json says: run `npm run generate`");
    process.exit(1);
  }
} else {
  await writeFile(OUTPUT, text);
}
