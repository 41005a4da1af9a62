/**
 * What needs Node, or a runtime that has its modules: files, certificates, the environment.
 *
 * Owns `connect` and `fromEnv`, which make a client of them, Unix sockets too. Deno and Bun have these modules, too; a browser does not.
 */

import { Client, type ClientOptions } from "../client.js";
import { InvalidArgumentError } from "../errors.js";
import { checkOptions } from "../options.js";
import { socketFetch } from "./socket.js";
import { type TlsOptions, tlsFetch } from "./tls.js";
import { tokenFile } from "./token.js";

export { type SavedBackup, saveBackup } from "./backup.js";
export { socketFetch } from "./socket.js";
export { type TlsOptions, tlsFetch } from "./tls.js";
export { tokenFile } from "./token.js";

/** The environment variable that names the endpoints. */
export const ENDPOINTS_ENV = "QUORATE_ENDPOINTS";
/** … the PEM file with the CAs whose certificates of nodes are believed. */
export const CA_ENV = "QUORATE_CA";
/** … the PEM file with the certificate that nodes are shown. */
export const CERT_ENV = "QUORATE_CERT";
/** … the PEM file with its private key. */
export const KEY_ENV = "QUORATE_KEY";
/** … the token that says who asks. */
export const TOKEN_ENV = "QUORATE_TOKEN";
/** … the file with that token. */
export const TOKEN_FILE_ENV = "QUORATE_TOKEN_FILE";

/** Settings of a client that has certificates, or a token in a file. */
export interface ConnectOptions extends ClientOptions, TlsOptions {
  /** File with the token that says who asks, in one line. Read again when it changes. */
  readonly tokenFile?: string | undefined;
}

/** Refuses endpoints in the place of options: they would not be seen, and be those of the local cluster. */
function checkConnect(options: ConnectOptions): void {
  checkOptions(options, (given) => `{ endpoints: ${JSON.stringify(given)} }`);
}

/**
 * A client with certificates or a token from files. Where a CA is named, endpoints that name no scheme speak TLS, and no other CA is
 * believed. An endpoint may be `unix:/path`, the socket of a node on this machine, which is asked in plain HTTP whatever the others speak.
 */
export function connect(options: ConnectOptions = {}): Client {
  checkConnect(options);
  const { ca, caFile, cert, certFile, key, keyFile, tokenFile: file, ...rest } = options;
  const hasCa = ca !== undefined || caFile !== undefined;
  const hasIdentity = [cert, certFile, key, keyFile].some((part) => part !== undefined);
  const tls = hasCa || hasIdentity ? tlsFetch({ ca, caFile, cert, certFile, key, keyFile }) : undefined;
  return new Client({
    ...rest,
    tls: rest.tls ?? tls !== undefined,
    fetch: rest.fetch ?? tls ?? socketFetch(),
    token: file === undefined ? rest.token : tokenFile(file),
  });
}

/**
 * A client of the nodes in `QUORATE_ENDPOINTS`, else of the local cluster; over TLS where `QUORATE_CA` names a CA, with the certificate in
 * `QUORATE_CERT` and its key in `QUORATE_KEY`, and the token in `QUORATE_TOKEN_FILE` or `QUORATE_TOKEN`, where they are there. Options go
 * before the environment.
 */
export function fromEnv(options: ConnectOptions = {}): Client {
  checkConnect(options);
  const { env } = process;
  const [certFile, keyFile] = [env[CERT_ENV], env[KEY_ENV]];
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new InvalidArgumentError(`${CERT_ENV} and ${KEY_ENV} belong together; give both or none`);
  }
  const file = env[TOKEN_FILE_ENV];
  const hasToken = options.token !== undefined || options.tokenFile !== undefined;
  const token = hasToken ? {} : file === undefined ? { token: env[TOKEN_ENV] } : { tokenFile: file };
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  return connect({
    endpoints: env[ENDPOINTS_ENV],
    caFile: env[CA_ENV],
    certFile,
    keyFile,
    ...token,
    ...given,
  });
}
