/** A request as text to copy: curl, command line, Python, TypeScript. Owns the frame around what a request says of itself. */

import { escapedJson } from "../json/format.js";
import { shellWord, text } from "./literals.js";
import type { Request } from "./request.js";

/** The languages, in the order in which they are offered. */
export const LANGUAGES = [
  { id: "curl", name: "curl" },
  { id: "cli", name: "Command line" },
  { id: "python", name: "Python" },
  { id: "typescript", name: "TypeScript" },
] as const;

/** A language that a request can be copied in. */
export type Language = (typeof LANGUAGES)[number]["id"];

/** Where and as whom the request is made. */
export interface Surroundings {
  /** Scheme, host and port of the node. */
  readonly origin: string;
  /** Whether a token says who asks. It is never part of what is copied. */
  readonly hasToken: boolean;
}

/** Programs read the token from where it is neither in a history nor in a list of processes. */
const TOKEN_VARIABLE = "QUORATE_TOKEN";

/** The request in this language; `undefined` where that cannot say it. */
export function copyAs(
  request: Request<unknown>,
  language: Language,
  around: Surroundings,
): string | undefined {
  switch (language) {
    case "curl":
      return curl(request, around);
    case "cli":
      return cli(request, around);
    case "python":
      return python(request, around);
    case "typescript":
      return typescript(request, around);
  }
}

function curl({ http }: Request<unknown>, { origin, hasToken }: Surroundings): string {
  const parts = ["curl"];
  if (http.method !== "GET") {
    parts.push(`-X ${http.method}`);
  }
  if (http.isStream) {
    // What comes is shown as it comes.
    parts.push("-N");
  }
  parts.push(shellWord(origin + http.target));
  if (hasToken) {
    parts.push(`-H "Authorization: Bearer $${TOKEN_VARIABLE}"`);
  }
  if (http.body !== undefined) {
    parts.push("-H 'Content-Type: application/json'", `-d ${shellWord(escapedJson(http.body))}`);
  }
  return parts.join(" ");
}

function cli({ cli }: Request<unknown>, { origin }: Surroundings): string | undefined {
  return cli && ["quorate", "--endpoints", origin, ...cli].map(shellWord).join(" ");
}

function python({ python }: Request<unknown>, { origin, hasToken }: Surroundings): string {
  const token = hasToken ? `, token=os.environ["${TOKEN_VARIABLE}"]` : "";
  const lines = python.split("\n").map((line) => `    ${line}`);
  const imports = hasToken ? "import os\n\nimport quorate" : "import quorate";
  return `${imports}\n\nwith quorate.Client(${text(origin)}${token}) as client:\n${lines.join("\n")}`;
}

function typescript({ typescript }: Request<unknown>, { origin, hasToken }: Surroundings): string {
  const options = hasToken
    ? `{ endpoints: ${text(origin)}, token: process.env.${TOKEN_VARIABLE} }`
    : text(origin);
  return `import { Client } from "quorate";\n\nconst client = new Client(${options});\n${typescript}`;
}
