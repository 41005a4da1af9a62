/**
 * `fetch` with certificates: a CA of one's own, and a certificate to show.
 *
 * Owns a `fetch` on `node:https`, since that of Node takes no certificates without a package of its own. It does what this client asks of
 * one, and no more.
 */

import { Agent, request } from "node:https";
import { createSecureContext } from "node:tls";
import { InvalidArgumentError } from "../errors.js";
import type { Fetch } from "../transport.js";
import { WatchedFiles } from "./files.js";
import { IDLE_MS, send, socketFetch } from "./socket.js";

/** Certificates, as PEM text or in files. Files are read again when they change; new connections go by what they say then. */
export interface TlsOptions {
  /** The CAs whose certificates of nodes are believed; there are no others then. Without them: those of the system. */
  readonly ca?: string | undefined;
  /** {@link ca} in a file. */
  readonly caFile?: string | undefined;
  /** The certificate that nodes are shown: the client is then who it says. */
  readonly cert?: string | undefined;
  /** {@link cert} in a file. */
  readonly certFile?: string | undefined;
  /** Its private key. */
  readonly key?: string | undefined;
  /** {@link key} in a file. */
  readonly keyFile?: string | undefined;
}

const PARTS = ["ca", "cert", "key"] as const;

/** Connections with these certificates. Throws where they do not fit together. */
function agentOf(pem: Partial<Record<(typeof PARTS)[number], string>>): Agent {
  if ((pem.cert === undefined) !== (pem.key === undefined)) {
    throw new InvalidArgumentError("a certificate and its key belong together; give both or none");
  }
  try {
    createSecureContext(pem);
  } catch (cause) {
    throw new InvalidArgumentError(`these certificates cannot be used: ${String(cause)}`, cause);
  }
  return new Agent({ ...pem, keepAlive: true, timeout: IDLE_MS, ALPNProtocols: ["http/1.1"] });
}

/** A `fetch` that believes these CAs and shows this certificate, for `new Client({ fetch })`. */
export function tlsFetch(options: TlsOptions): Fetch {
  const given = Object.fromEntries(
    PARTS.flatMap((part) => (options[part] === undefined ? [] : [[part, options[part]]])),
  );
  const inFiles = PARTS.flatMap((part) => {
    const path = options[`${part}File`];
    return path === undefined || part in given ? [] : [{ part, path }];
  });
  const agent = new WatchedFiles(
    inFiles.map(({ path }) => path),
    (texts) => agentOf({ ...given, ...Object.fromEntries(inFiles.map(({ part }, at) => [part, texts[at]])) }),
  );
  const plain = socketFetch();
  return (url, init) =>
    url.startsWith("https:") ? send(request, target(agent.get(), new URL(url)), init) : plain(url, init);
}

/** Where a request goes, as `node:https` has it. */
function target(agent: Agent, { hostname, port, pathname, search }: URL) {
  const host = hostname.replace(/^\[|\]$/g, "");
  return { agent, host, port: port === "" ? 443 : port, path: pathname + search };
}
