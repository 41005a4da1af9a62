/**
 * Serves the built console as a node does, and passes everything else to nodes: for development and for tests.
 *
 * Owns the same headers as the node sends (its policy above all), and the way to the nodes: the first that takes the connection is
 * asked, from the one that answered last. Where a connection breaks off, so does ours, and the next call goes to the next node: the
 * client knows what it may send again. What a node streams is passed on as it comes.
 *
 * Usage: node scripts/serve.mjs --nodes http://127.0.0.1:7101,http://127.0.0.1:7102 [--port 0] [--dist DIRECTORY]
 */

import { readFileSync, statSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};
const BASE = "/console/";

const { values } = parseArgs({
  options: {
    nodes: { type: "string", default: "http://127.0.0.1:7101,http://127.0.0.1:7102,http://127.0.0.1:7103" },
    port: { type: "string", default: "0" },
    dist: { type: "string", default: fileURLToPath(new URL("../dist", import.meta.url)) },
  },
});
const nodes = values.nodes.split(",").map((node) => new URL(node));
let first = 0;

/** The file of this path, or the page for one that is no file. */
function fileOf(path) {
  const file = join(values.dist, normalize(decodeURIComponent(path.slice(BASE.length))));
  const isThere = file.startsWith(values.dist) && statSync(file, { throwIfNoEntry: false })?.isFile();
  return isThere ? file : join(values.dist, "index.html");
}

function serveFile(path, response) {
  const file = fileOf(path);
  response.writeHead(200, {
    "content-type": TYPES[extname(file)] ?? "application/octet-stream",
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
  });
  response.end(readFileSync(file));
}

/** Asks the nodes in turn until one takes the connection. A body is kept, so that it can be sent again. */
async function pass(request, response) {
  const chunks = [];
  for await (const chunk of request) {
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  for (let turn = 0; turn < nodes.length; turn += 1) {
    const at = (first + turn) % nodes.length;
    const way = await passTo(nodes[at], request, body, response);
    if (way !== "not taken") {
      first = way === "answered" ? at : (at + 1) % nodes.length;
      return;
    }
  }
  response.writeHead(502, { "content-type": "text/plain" }).end("no node takes the connection\n");
}

/** What became of it at this node: `answered`, `broken` off, or `not taken`. What it says is passed on, whatever that is. */
function passTo(node, request, body, response) {
  return new Promise((resolve) => {
    const send = node.protocol === "https:" ? httpsRequest : httpRequest;
    const headers = { ...request.headers, host: node.host };
    // Nodes of a test have certificates of their own making.
    const options = { method: request.method, headers, rejectUnauthorized: false };
    const onward = send(new URL(request.url, node), options, (answer) => {
      resolve("answered");
      response.writeHead(answer.statusCode, answer.headers);
      answer.on("error", () => response.destroy());
      answer.pipe(response);
    });
    response.on("close", () => onward.destroy());
    onward.on("error", (error) => {
      if (error.code === "ECONNREFUSED") {
        resolve("not taken");
        return;
      }
      resolve("broken");
      response.destroy();
    });
    onward.end(body);
  });
}

const server = createServer((request, response) => {
  const path = new URL(request.url, "http://console").pathname;
  if (path === "/" || path === "/console") {
    response.writeHead(308, { location: BASE }).end();
  } else if (path.startsWith(BASE)) {
    serveFile(path, response);
  } else {
    pass(request, response).catch((error) => response.destroy(error));
  }
});
server.listen(Number(values.port), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}${BASE}`);
});
// Ends with whoever started it.
process.stdin.resume().on("end", () => process.exit(0));
