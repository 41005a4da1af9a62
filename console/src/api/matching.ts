/** Requests about all entries of which something holds: counted, changed, deleted; and the collections that there are. */

import type { CollectionPage, Counted, WhereAnswer } from "quorate";
import { shownName } from "../text/named.js";
import type { JsonText } from "./json-text.js";
import { type Clause, clausesCli, clausesJson } from "./keys.js";
import {
  keyMember,
  keyWord,
  pythonOptions,
  pythonValue,
  text,
  typescriptOptions,
  typescriptValue,
} from "./literals.js";
import { type Request, target } from "./request.js";

/** Which entries. */
export interface Matching {
  readonly prefix: string;
  /** All of it has to hold. */
  readonly where: readonly Clause[];
}

/** One part of a change, and where it begins. */
export interface Part {
  /** Says what would happen, and changes nothing. */
  readonly dryRun: boolean;
  /** Most entries of one part. */
  readonly limit: number;
  readonly cursor?: string | undefined;
}

function below(prefix: string): string {
  return prefix === "" ? "" : ` below \`${shownName(prefix)}\``;
}

/** How many there are. */
export function countMatching({ prefix, where }: Matching): Request<Counted> {
  const json = clausesJson(where);
  const options = { prefix: prefix === "" ? undefined : text(prefix), where: typescriptValue(json) };
  return {
    title: `Count the matching entries${below(prefix)}`,
    writes: false,
    http: {
      method: "POST",
      target: "/v1/count",
      body: `{${prefix === "" ? "" : `${keyMember("prefix", prefix)},`}"where":${json}}`,
    },
    cli: ["count", ...(prefix === "" ? [] : [keyWord(prefix)]), ...clausesCli(where)],
    python: `print(client.count(${text(prefix)}, ${pythonValue(json)}))`,
    typescript: `console.log(await client.count(${typescriptOptions(options)}));`,
    run: (client, signal) => client.count({ ...(prefix !== "" && { prefix }), where, signal }),
  };
}

/** Patches a part of them: one step in the cluster. */
export function updateMatching(matching: Matching, patch: JsonText, part: Part): Request<WhereAnswer> {
  const { prefix, where } = matching;
  const conditions = clausesJson(where);
  return {
    title: `${part.dryRun ? "Dry run: update" : "Update"} all matching entries${below(prefix)}`,
    writes: !part.dryRun,
    http: { method: "POST", target: "/v1/update_where", body: bodyOf(matching, part, patch) },
    cli: ["update-where", keyWord(prefix), patch.text, ...clausesCli(where), ...cliOf(matching, part)],
    python: `print(client.update_where(${text(prefix)}, ${pythonValue(conditions)}, ${pythonValue(patch.text)}${pythonOf(part)}))`,
    typescript: `for await (const part of client.updateAllWhere(${typescriptOf(matching, part, patch)})) console.log(part);`,
    run: (client, signal) =>
      client.updateWhere({
        prefix,
        where,
        patch,
        ...part,
        signal,
      }),
  };
}

/** Deletes a part of them: one step in the cluster. */
export function deleteMatching(matching: Matching, part: Part): Request<WhereAnswer> {
  const { prefix, where } = matching;
  return {
    title: `${part.dryRun ? "Dry run: delete" : "Delete"} all matching entries${below(prefix)}`,
    writes: !part.dryRun,
    http: { method: "POST", target: "/v1/delete_where", body: bodyOf(matching, part) },
    cli: ["delete-where", keyWord(prefix), ...clausesCli(where), ...cliOf(matching, part)],
    python: `print(client.delete_where(${text(prefix)}, ${pythonValue(clausesJson(where))}${pythonOf(part)}))`,
    typescript: `for await (const part of client.deleteAllWhere(${typescriptOf(matching, part)})) console.log(part);`,
    run: (client, signal) => client.deleteWhere({ prefix, where, ...part, signal }),
  };
}

function bodyOf({ prefix, where }: Matching, { dryRun, limit, cursor }: Part, patch?: JsonText): string {
  const parts = [
    keyMember("prefix", prefix),
    `"where":${clausesJson(where)}`,
    `"limit":${limit}`,
    cursor && `"cursor":${JSON.stringify(cursor)}`,
    patch && `"patch":${patch.text}`,
    dryRun ? '"dry_run":true' : undefined,
  ];
  return `{${parts.filter((part) => part !== undefined).join(",")}}`;
}

function cliOf({ prefix, where }: Matching, { dryRun, limit }: Part): string[] {
  if (dryRun) {
    return ["--limit", String(limit), "--dry-run"];
  }
  // The command line takes no empty prefix for all entries unless that is said.
  const isEverything = prefix === "" && where.length === 0;
  return [...(isEverything ? ["--everything"] : []), "--all", "--limit", String(limit)];
}

function pythonOf({ dryRun, limit, cursor }: Part): string {
  return pythonOptions({
    limit: String(limit),
    cursor: cursor && text(cursor),
    dry_run: dryRun ? "True" : undefined,
  });
}

function typescriptOf(
  { prefix, where }: Matching,
  { dryRun, limit, cursor }: Part,
  patch?: JsonText,
): string {
  return typescriptOptions({
    prefix: text(prefix),
    where: typescriptValue(clausesJson(where)),
    patch: patch && typescriptValue(patch.text),
    limit: String(limit),
    cursor: cursor && text(cursor),
    dryRun: dryRun ? "true" : undefined,
  });
}

/** A page of the collections, by name. */
export function listCollections(limit: number, cursor?: string): Request<CollectionPage> {
  return {
    title: "List the collections",
    writes: false,
    http: { method: "GET", target: target("/v1/collections", { limit, cursor }) },
    cli: ["collection", "list"],
    python: `print(client.collections(limit=${limit}${pythonOptions({ cursor: cursor && text(cursor) })}))`,
    typescript: `console.log(await client.collections({ limit: ${limit} }).page(${cursor === undefined ? "" : text(cursor)}));`,
    run: (client, signal) => client.collections({ limit, signal }).page(cursor),
  };
}
