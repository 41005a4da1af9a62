/**
 * The way of every call from first attempt to final answer.
 *
 * Owns the loops over attempts, for answers and for streams, and what is learned of the nodes on the way. What it decides with is
 * pure: `endpoints` (which node), `retry` (whether again). A write carries one request id over all its attempts, so whatever happens
 * it is applied at most once.
 */

import type { Call } from "./call.js";
import { readCall } from "./call.js";
import { Endpoints, INTRODUCTION_PAUSE_MS, type LeaderHint, NO_HINT, type Preference } from "./endpoints.js";
import {
  InvalidArgumentError,
  OtherClusterError,
  OutcomeUnknownError,
  type Problem,
  ProtocolError,
  type QuorateError,
  RejectedError,
  UnavailableError,
} from "./errors.js";
import { canonicalKey, shownKey } from "./keys.js";
import { fromWire } from "./names.js";
import { Attempts, type Failure, isFinal, patienceLeft, type RetryPolicy } from "./retry.js";
import { now, rest, sleep } from "./timing.js";
import {
  type Attempted,
  attempt,
  type Endpoint,
  type Fetch,
  type OpenedStream,
  openStream,
  parseEndpoint,
} from "./transport.js";
import type { Troubles } from "./trouble.js";
import type { Status } from "./types.js";

/** How long a node may take to say who it is. */
const INTRODUCTION_TIMEOUT_MS = 1_000;

/** Follows in the error of a call that failed in doubt. */
const HOW_TO_GO_ON =
  "if the other one has replaced ours, as a restore does, try again: the client goes over once it has heard nothing else for 10 s; if not, " +
  "put that node right, or take it off the endpoints";

/** The token that says who asks. Called with the token that a node has just refused, where one has. */
export type TokenSource = (refused?: string) => string | undefined | Promise<string | undefined>;

/** Settings of the way of calls. */
export interface CallerSettings {
  readonly endpoints: readonly Endpoint[];
  /** Whether members that were not given are reached by TLS. */
  readonly othersTls: boolean;
  readonly fetch: Fetch;
  readonly token: TokenSource | undefined;
  readonly timeoutMs: number;
  readonly attemptMs: number;
  readonly retry: RetryPolicy;
  readonly reads: Preference;
  readonly discovers: boolean;
  readonly parse: (text: string) => unknown;
  readonly troubles: Troubles;
}

/** A successful answer. */
export interface Reply {
  readonly endpoint: string;
  /** 2xx or 304; for HEAD also 404. */
  readonly status: number;
  readonly text: string;
}

/** A stream that was opened. */
export interface Stream {
  readonly node: number;
  /** The revision that the node was at. */
  readonly revision: string | undefined;
  readonly body: ReadableStream<Uint8Array>;
  close(): void;
}

/** What an answer means for its call. */
type Judged =
  | { readonly kind: "good" }
  | { readonly kind: "refused"; readonly problem: Problem }
  | { readonly kind: "failed"; readonly failure: Failure }
  | { readonly kind: "nonsense"; readonly detail: string };

/** One call on its way: the attempts that it has had. */
interface Way {
  readonly call: Call;
  readonly started: number;
  readonly attempts: Attempts;
  /** The node that failed last. */
  failed: number | undefined;
  /** The token that the attempt under way shows. */
  token: string | undefined;
  /** Whether it was refused for an old token once. */
  isRefreshed: boolean;
}

/** Makes calls to the nodes of one cluster. */
export class Caller {
  readonly settings: CallerSettings;
  readonly #nodes: Endpoint[];
  readonly #endpoints: Endpoints;
  readonly #closed = new AbortController();

  constructor(settings: CallerSettings) {
    this.settings = settings;
    this.#nodes = [...settings.endpoints];
    this.#endpoints = new Endpoints(this.#nodes.length, Math.floor(Math.random() * 0x1_0000));
    const isClear = !settings.othersTls || this.#nodes.some(({ isTls, isSocket }) => !(isTls || isSocket));
    // A token is never sent in clear to an address that was not given.
    if (settings.discovers && !(isClear && settings.token !== undefined)) {
      this.#endpoints.discover(now());
    }
  }

  /** All nodes that calls may go to, `host:port`. */
  get addresses(): string[] {
    return this.#nodes.map((node) => node.address);
  }

  /** Aborted when the client is closed: what goes on in the background ends then. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Ends what goes on in the background. */
  close(): void {
    this.#closed.abort(new InvalidArgumentError("the client is closed"));
  }

  /** Makes the call; the JSON of its answer with the names of fields as they are here. */
  async fetch<T>(call: Call): Promise<T> {
    return this.decode<T>(call, await this.send(call));
  }

  /** Makes a call that may find nothing: `undefined` then. */
  async find<T>(call: Call): Promise<T | undefined> {
    try {
      return await this.fetch<T>(call);
    } catch (error) {
      if (error instanceof RejectedError && error.code === "not_found") {
        return undefined;
      }
      throw error;
    }
  }

  /** The JSON of an answer, which is about what was asked for. */
  decode<T>(call: Call, reply: Reply): T {
    // Where it is not: the status says it worked, the body does not say what.
    const applied = call.intent.kind === "read" ? "no" : "unknown";
    const known = { applied, requestId: requestIdOf(call) } as const;
    let answer: unknown;
    try {
      answer = fromWire(this.settings.parse(reply.text));
    } catch (cause) {
      const what = `the body of status ${reply.status} is not what ${call.method} ${call.target} answers`;
      throw new ProtocolError(reply.endpoint, what, { ...known, cause });
    }
    const other = otherOf(call, answer);
    if (other !== undefined) {
      throw new ProtocolError(reply.endpoint, other.words, { ...known, about: other.about });
    }
    return answer as T;
  }

  /** Makes the call: attempts it until it is decided or its time is up. */
  async send(call: Call): Promise<Reply> {
    const way = begin(call);
    const timeoutMs = call.timeoutMs ?? this.settings.timeoutMs;
    const left =
      call.intent.kind === "write"
        ? patienceLeft(timeoutMs, call.holdMs)
        : () => timeoutMs + (call.holdMs ?? 0) - (now() - way.started);
    for (;;) {
      const node = await this.#next(way);
      const budget = Math.min(left(), (call.attemptMs ?? this.settings.attemptMs) + (call.holdMs ?? 0));
      const attempted = await this.#attempt(node, call, budget, way.token);
      const judged = this.#judge(node, call, attempted);
      if (judged.kind === "good") {
        const { status, text } = attempted as Extract<Attempted, { kind: "answer" }>;
        return { endpoint: this.#node(node).address, status, text };
      }
      await this.#goOn(way, node, judged, left);
    }
  }

  /**
   * Opens an answer that is taken as it comes: tries one node after the other until one has it, refuses for good, or the time is up: so
   * much, what `patience` says is left, or none where there is none.
   */
  async open(call: Call, accept: string, patience: number | (() => number) | undefined): Promise<Stream> {
    const way = begin(call);
    const limit = patience ?? Number.POSITIVE_INFINITY;
    const left = typeof limit === "function" ? limit : () => limit - (now() - way.started);
    for (;;) {
      const node = await this.#next(way);
      const budget = Math.min(left(), this.settings.attemptMs);
      const opened = this.#believed(
        node,
        await openStream(
          this.settings.fetch,
          this.#node(node),
          call,
          accept,
          budget,
          way.token,
          this.closed,
          this.#endpoints.isForeign(node),
        ),
      );
      if (opened.kind === "stream") {
        this.#learn(node, opened.hint);
        return { node, revision: opened.revision, body: opened.body, close: opened.close };
      }
      const judged = this.#judge(node, call, opened);
      if (judged.kind === "good") {
        throw this.strange(node, `no ${accept}; is this a Quorate node?`);
      }
      await this.#goOn(way, node, judged, left, patience === undefined);
    }
  }

  /** One attempt at one node, whatever is known of it. */
  async fetchFrom<T>(node: number, call: Call, budgetMs: number): Promise<T> {
    const text = await this.textFrom(node, call, budgetMs);
    return this.decode<T>(call, { endpoint: this.#node(node).address, status: 200, text });
  }

  /** The text that one node answers. */
  async textFrom(node: number, call: Call, budgetMs: number): Promise<string> {
    const started = now();
    const token = await this.settings.token?.();
    const attempted = await this.#attempt(node, call, budgetMs, token);
    if (attempted.kind === "failure") {
      throw this.#gaveUp({ ...begin(call), started }, node, attempted.failure);
    }
    if (attempted.status >= 200 && attempted.status < 300) {
      return attempted.text;
    }
    const problem = this.#problem(attempted.text);
    throw problem === undefined ? this.strange(node, strange(attempted.status)) : new RejectedError(problem);
  }

  /** A node that was well is not any more. */
  nodeFailed(node: number): void {
    this.#endpoints.onFailure(node, now());
  }

  /** Something came from a node that is no answer to a call, as on a stream that goes on for days. */
  onSignOfLife(node: number): void {
    this.#learn(node, NO_HINT);
  }

  /** An error about what a node sent. */
  strange(node: number, what: string, cause?: unknown): ProtocolError {
    return new ProtocolError(this.#node(node).address, what, { cause });
  }

  #node(node: number): Endpoint {
    const endpoint = this.#nodes[node];
    if (endpoint === undefined) {
      throw new RangeError(`there are ${this.#nodes.length} endpoints, no endpoint ${node}`);
    }
    return endpoint;
  }

  /** The node of the next attempt, and the token to show it. */
  async #next(way: Way): Promise<number> {
    way.call.signal?.throwIfAborted();
    this.closed.throwIfAborted();
    way.token = await this.settings.token?.();
    return this.#endpoints.pick(way.call.preference, way.failed, now());
  }

  /** Waits before the next attempt, or throws where there is none. */
  async #goOn(
    way: Way,
    node: number,
    judged: Exclude<Judged, { kind: "good" }>,
    left: () => number,
    goesOn = false,
  ): Promise<void> {
    if (judged.kind === "nonsense") {
      const applied = way.attempts.fateOpen ? "unknown" : "no";
      throw new ProtocolError(this.#node(node).address, judged.detail, {
        applied,
        requestId: requestIdOf(way.call),
      });
    }
    if (judged.kind === "refused") {
      if (await this.#showsNewer(way, judged.problem)) {
        return;
      }
      throw this.#refused(way, node, judged.problem);
    }
    const { failure } = judged;
    if (failure.kind !== "foreign") {
      this.#endpoints.onFailure(node, now());
    }
    way.failed = node;
    if (this.#endpoints.beginIntroduction(now())) {
      void this.#introduceAll();
    }
    const { retry } = this.settings;
    const pause = way.attempts.onFailure(failure, way.call.intent, retry, this.#nodes.length, Math.random());
    // Tries are bounded for calls. A watch goes on as long as its time does.
    const wait = pause ?? (goesOn ? retry.backoffMaxMs : undefined);
    if (wait === undefined || wait >= left()) {
      throw this.#gaveUp(way, node, failure);
    }
    if (wait > 0) {
      await sleep(wait, way.call.signal);
    }
    // The machine may have slept for longer.
    if (left() <= 0) {
      throw this.#gaveUp(way, node, failure);
    }
  }

  /** Whether to make the attempt that was refused again: the token was exchanged, and we were late to see it. Once. */
  async #showsNewer(way: Way, problem: Problem): Promise<boolean> {
    if (way.isRefreshed || problem.code !== "unauthenticated" || way.token === undefined) {
      return false;
    }
    const newer = await this.settings.token?.(way.token);
    way.isRefreshed = newer !== undefined && newer !== way.token;
    return way.isRefreshed;
  }

  #refused(way: Way, node: number, problem: Problem): QuorateError {
    if (way.attempts.settledBy(problem)) {
      return new RejectedError(problem);
    }
    way.attempts.failures += 1;
    return this.#gaveUp(way, node, {
      kind: "problem",
      reason: `${problem.title}: ${problem.detail}`,
      problem,
    });
  }

  /** The words behind the reason of a failure while in doubt, unless a node said it. */
  #inDoubt(failure: Failure): string[] {
    const { stranger, cluster } = this.#endpoints;
    if (failure.kind === "foreign") {
      return [HOW_TO_GO_ON];
    }
    if (failure.kind === "problem" || stranger === undefined) {
      return [];
    }
    const words = `${this.#node(stranger.node).address} is of cluster ${stranger.cluster}, not of ${cluster}`;
    return [words, HOW_TO_GO_ON];
  }

  #gaveUp(way: Way, node: number, failure: Failure): QuorateError {
    const gaveUp = {
      attempts: Math.max(1, way.attempts.failures),
      elapsedMs: now() - way.started,
      requestId: requestIdOf(way.call),
      endpoint: this.#node(node).address,
      reason: [failure.reason, ...this.#inDoubt(failure)].join("; "),
      problem: failure.problem,
      cause: failure.cause,
    };
    return way.attempts.fateOpen ? new OutcomeUnknownError(gaveUp) : new UnavailableError(gaveUp);
  }

  async #attempt(node: number, call: Call, budgetMs: number, token: string | undefined): Promise<Attempted> {
    const { fetch } = this.settings;
    const closes = this.#endpoints.isForeign(node);
    const endpoint = this.#node(node);
    return this.#believed(node, await attempt(fetch, endpoint, call, budgetMs, token, this.closed, closes));
  }

  /** What an attempt came to, unless it is the answer of a node of another cluster. */
  #believed<Came extends OpenedStream>(node: number, came: Came): Came | Attempted {
    const stranger = came.kind === "failure" ? undefined : this.#strangerOf(node, came.hint.cluster);
    if (stranger === undefined) {
      return came;
    }
    if (came.kind === "stream") {
      came.close();
    }
    return { kind: "failure", failure: stranger };
  }

  /** What it comes to that a node says of which cluster it is; `undefined` where that is ours, or nothing was said. Trouble is told once. */
  #strangerOf(node: number, cluster: string | undefined): Failure | undefined {
    const known = cluster ? this.#endpoints.onCluster(node, cluster, now()) : "ours";
    const ours = this.#endpoints.cluster;
    if (known === "ours" || cluster === undefined || ours === undefined) {
      return undefined;
    }
    const cause = new OtherClusterError(this.#node(node).address, cluster, ours);
    if (known === "news") {
      this.settings.troubles.tell(cause);
    }
    return { kind: "foreign", reason: `the node is of cluster ${cluster}, not of ${ours}`, cause };
  }

  /** What an answer means for the call; learns from its headers on the way. */
  #judge(node: number, call: Call, attempted: Attempted): Judged {
    if (attempted.kind === "failure") {
      return { kind: "failed", failure: attempted.failure };
    }
    const { status, hint, text } = attempted;
    // What HEAD is answered has no problem document, so only a node may say that there is no entry.
    const isMissing = call.method === "HEAD" && status === 404 && hint.term > 0n;
    if ((status >= 200 && status < 300) || status === 304 || isMissing) {
      this.#learn(node, hint);
      return { kind: "good" };
    }
    const problem = this.#problem(text);
    if (problem === undefined) {
      const detail = strange(status);
      const mayPass = status >= 500 || status === 429;
      return mayPass
        ? { kind: "failed", failure: { kind: "strange", reason: detail } }
        : { kind: "nonsense", detail };
    }
    if (isFinal(problem)) {
      this.#learn(node, hint);
      return { kind: "refused", problem };
    }
    const reason = `${problem.title}: ${problem.detail}`;
    return { kind: "failed", failure: { kind: "problem", reason, problem } };
  }

  #problem(text: string): Problem | undefined {
    try {
      const problem = fromWire(this.settings.parse(text)) as Partial<Problem> | null;
      const isProblem = typeof problem?.code === "string" && typeof problem.applied === "string";
      return isProblem ? (problem as Problem) : undefined;
    } catch {
      // No JSON, so no problem document: the caller says what it is instead.
      return undefined;
    }
  }

  #learn(node: number, hint: LeaderHint): void {
    const at = now();
    this.#endpoints.onAnswer(node, hint);
    const isStranger = this.#endpoints.beginIntroduction(at);
    if (this.#endpoints.beginDiscovery(at) || isStranger) {
      void this.#introduceAll();
    }
  }

  /**
   * Asks every node who it is. While others than ours answer it goes on, so that their words come without gaps until the doubt is over. Never
   * rejects.
   */
  async #introduceAll(): Promise<void> {
    while (!(await this.#introduceEach()) && this.#endpoints.isInDoubt(now())) {
      const isOpen = await rest(INTRODUCTION_PAUSE_MS, this.closed).then(
        () => true,
        () => false,
      );
      // Where another round has begun meanwhile, that goes on in place of this.
      if (!isOpen || !this.#endpoints.beginIntroduction(now())) {
        return;
      }
    }
  }

  /** Asks every node who it is, and from what they say finds members that are not among them. Whether any of ours answered. */
  async #introduceEach(): Promise<boolean> {
    const asked = await Promise.all([...this.#nodes.keys()].map((node) => this.#introduce(node)));
    const answered = asked.filter((status) => status !== undefined);
    // One may have been believed before others outvoted it.
    const { cluster } = this.#endpoints;
    const believed = answered.filter(({ clusterId }) => cluster === undefined || clusterId === cluster);
    const latest = believed.sort((one, other) => other.appliedIndex - one.appliedIndex)[0];
    if (latest !== undefined && latest.clusterId !== "" && this.#endpoints.discovers) {
      await this.#discover(latest);
    }
    return latest !== undefined;
  }

  /** What the node says of itself; one that does not answer stays unknown until the next round. */
  async #introduce(node: number): Promise<Status | undefined> {
    try {
      const status = await this.fetchFrom<Status>(node, this.#statusCall(), INTRODUCTION_TIMEOUT_MS);
      if (this.#strangerOf(node, status.clusterId) !== undefined) {
        return undefined;
      }
      this.#endpoints.introduce(node, status.nodeId, {
        term: BigInt(status.term),
        leaderId: status.leaderId,
      });
      return status;
    } catch {
      return undefined;
    }
  }

  /** Asks the members that are not known for who they are, and adds those that answer as they should. */
  async #discover(view: Status): Promise<void> {
    this.#endpoints.retain(view.members.map((member) => member.id));
    const given = this.settings.endpoints.map((endpoint) => endpoint.address);
    const unknown = view.members.filter(
      (member) => !this.#endpoints.isKnown(member.id) && isReachable(member.clientAddr, given),
    );
    await Promise.all(
      unknown.map((member) => this.#makeAcquaintance(member.id, member.clientAddr, view.clusterId)),
    );
  }

  /** Adds the member, if it is there and is who the others say. */
  async #makeAcquaintance(id: number, address: string, clusterId: string): Promise<void> {
    try {
      const endpoint = parseEndpoint(address, this.settings.othersTls);
      const token = await this.settings.token?.();
      const call = this.#statusCall();
      const attempted = await attempt(
        this.settings.fetch,
        endpoint,
        call,
        INTRODUCTION_TIMEOUT_MS,
        token,
        this.closed,
      );
      if (attempted.kind === "failure") {
        return;
      }
      const status = fromWire(this.settings.parse(attempted.text)) as Status;
      // Another round may have been faster, and the client may have gone over since.
      const isOurs = status.clusterId === clusterId && clusterId === this.#endpoints.cluster;
      if (status.nodeId === id && isOurs && !this.#endpoints.isKnown(id)) {
        this.#nodes.push(endpoint);
        this.#endpoints.add(id);
        this.#endpoints.onCluster(this.#nodes.length - 1, clusterId, now());
      }
    } catch {
      // An address that is none, or an answer that is none: the next round asks again.
    }
  }

  #statusCall(): Call {
    return readCall("/v1/cluster/status");
  }
}

function begin(call: Call): Way {
  return {
    call,
    started: now(),
    attempts: new Attempts(),
    failed: undefined,
    token: undefined,
    isRefreshed: false,
  };
}

function requestIdOf(call: Call): string | undefined {
  return call.intent.kind === "write" ? call.intent.id : undefined;
}

/** What an answer is about, where that is not what the call asks for. */
export function otherOf(
  { about: asked = {} }: Pick<Call, "about">,
  answer: unknown,
): { readonly about: string; readonly words: string } | undefined {
  for (const [field, name] of Object.entries(asked)) {
    const about = (answer as Record<string, unknown> | null)?.[field];
    if (typeof about === "string" && about !== canonicalKey(name)) {
      return { about, words: elsewhere(about, name) };
    }
  }
  return undefined;
}

/** What is wrong with an answer that is about something else. */
function elsewhere(about: string, asked: string): string {
  const [here, there] = [shownKey(about), shownKey(asked)];
  return `the answer is about \`${here}\`, not \`${there}\`: a proxy may have changed the path`;
}

function strange(status: number): string {
  return `status ${status} without a problem document; is this a Quorate node?`;
}

const LOCAL_HOST = /^(unix:\/.*|localhost|127(\.\d+){3}|\[?::1\]?)$/;
const NO_HOST = /^(|0\.0\.0\.0|\[?::\]?)$/;

/** Whether an address that a member advertises can mean the same to us. One of the node's own machine does not, unless ours is that. */
export function isReachable(address: string, given: readonly string[]): boolean {
  const host = (address: string) =>
    address.startsWith("unix:/") ? address : address.slice(0, Math.max(0, address.lastIndexOf(":")));
  const advertised = host(address);
  if (NO_HOST.test(advertised)) {
    return false;
  }
  return !LOCAL_HOST.test(advertised) || given.some((given) => LOCAL_HOST.test(host(given)));
}
