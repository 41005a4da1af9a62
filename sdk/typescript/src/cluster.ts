/**
 * The cluster itself: its nodes, its members, what became of requests.
 *
 * Owns these calls. A change of the members is made under a request id, and waited for longer than other calls.
 */

import { namePath, onceCall, readCall, repeatableCall, writeCall } from "./call.js";
import { Caller } from "./caller.js";
import { ProtocolError, QuorateError } from "./errors.js";
import type { Camel } from "./names.js";
import { checkOptions, patienceOf } from "./options.js";
import { now, sleep } from "./timing.js";
import { parseEndpoint } from "./transport.js";
import type {
  CallOptions,
  Limits,
  Members,
  MembersChanged,
  NodeCallers,
  RequestOptions,
  Status,
  Version,
} from "./types.js";
import type { Wire } from "./wire.js";

/** How long a node may take to tell its status; it needs no other node for that. */
const STATUS_TIMEOUT_MS = 2_000;
/** Pause between two looks at the nodes while waiting for them. */
const READY_PAUSE_MS = 50;
/** How long one node may take for a change of the members, which waits until a learner has caught up. */
const CHANGE_ATTEMPT_MS = 60_000;
const MEMBERS = "/v1/cluster/members";

/** One endpoint, and what the node behind it says, or why it says nothing. */
export type NodeSays<T> =
  | { readonly address: string; readonly says: T; readonly error?: undefined }
  | { readonly address: string; readonly says?: undefined; readonly error: QuorateError };

/** How a change of the members is made. */
export interface ChangeMembersOptions extends RequestOptions {
  /** Only ask what it would come to. */
  readonly dryRun?: boolean | undefined;
  /** Make it also where it is unwise. Where it would cost quorum it is refused all the same. */
  readonly force?: boolean | undefined;
}

/** The cluster, from `client.cluster`. */
export class Cluster {
  readonly #caller: Caller;

  /** Made by the client. */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** The cluster as one node sees it. */
  status(options?: CallOptions): Promise<Status> {
    return this.#caller.fetch(readCall("/v1/cluster/status", undefined, options));
  }

  /** The cluster as each endpoint sees it, in the order given. */
  statusOfAll(): Promise<NodeSays<Status>[]> {
    const call = readCall("/v1/cluster/status");
    return this.#ofAll((node) => this.#caller.fetchFrom<Status>(node, call, STATUS_TIMEOUT_MS));
  }

  /**
   * Every member as it sees the cluster, in order of ids. Members that no endpoint leads to are asked at the address that they advertise; one
   * that does not answer is there with the reason, and so is an endpoint that nobody knows.
   */
  async overview(): Promise<(NodeSays<Status> & { readonly id: number | undefined })[]> {
    const asked = await this.statusOfAll();
    const latest = asked
      .flatMap((node) => node.says ?? [])
      .sort((one, other) => other.appliedIndex - one.appliedIndex)[0];
    const members = latest?.members ?? [];
    const answered = new Set(asked.flatMap((node) => node.says?.nodeId ?? []));
    const missing = members.filter(({ id }) => !answered.has(id));
    const idAt = (address: string) => missing.find((member) => member.clientAddr === address)?.id;
    const unasked = missing.filter(({ clientAddr }) => !asked.some(({ address }) => address === clientAddr));
    const others = await Promise.all(
      unasked.map(async ({ id, clientAddr }) => ({ id, ...(await this.#ask(clientAddr)) })),
    );
    const ofEndpoints = asked.map((node) => ({ id: node.says?.nodeId ?? idAt(node.address), ...node }));
    const all = new Map([...ofEndpoints, ...others].map((node) => [node.id ?? node.address, node]));
    return [...all.values()].sort(
      (one, other) => (one.id ?? Number.MAX_VALUE) - (other.id ?? Number.MAX_VALUE),
    );
  }

  /** The numbers of each endpoint, in the order given: OpenMetrics text. */
  metricsOfAll(): Promise<NodeSays<string>[]> {
    const call = readCall("/metrics");
    return this.#ofAll((node) => this.#caller.textFrom(node, call, STATUS_TIMEOUT_MS));
  }

  /**
   * Waits until the nodes would answer a linearizable read: all of the endpoints, or with `any` one of them. Resolves with the last look;
   * ready or not is for the caller to see.
   */
  async waitReady(options: {
    any?: boolean;
    timeoutMs: number;
    signal?: AbortSignal;
  }): Promise<NodeSays<Status>[]> {
    checkOptions(options);
    const timeoutMs = patienceOf("timeoutMs", options.timeoutMs) ?? 0;
    const started = now();
    for (;;) {
      const nodes = await this.statusOfAll();
      const ready = nodes.filter((node) => node.says?.ready).length;
      if (ready === nodes.length || (options.any && ready > 0) || now() - started >= timeoutMs) {
        return nodes;
      }
      await sleep(READY_PAUSE_MS, options.signal);
    }
  }

  /** All members, as the leader knows them. */
  members(options?: CallOptions): Promise<Members> {
    return this.#caller.fetch({ ...readCall(MEMBERS, undefined, options), preference: "leader" });
  }

  /** Takes in a node that was started and waits, as a learner. With `promote` it votes once it caught up, which is waited for. */
  addMember(
    member: { id: number; peerAddr: string; promote?: boolean },
    options: ChangeMembersOptions = {},
  ): Promise<MembersChanged> {
    return this.#change("POST", "", member, options);
  }

  /** Gives a learner that has caught up a vote. */
  promoteMember(id: number, options: ChangeMembersOptions = {}): Promise<MembersChanged> {
    return this.#change("POST", `/${id}/promote`, {}, options);
  }

  /** Takes the vote of a member, which stays a learner. */
  demoteMember(id: number, options: ChangeMembersOptions = {}): Promise<MembersChanged> {
    return this.#change("POST", `/${id}/demote`, {}, options);
  }

  /** Lets a member go. */
  removeMember(id: number, options: ChangeMembersOptions = {}): Promise<MembersChanged> {
    return this.#change("DELETE", `/${id}`, undefined, options);
  }

  /** Lets the learner `by` vote in place of `id`, which goes, in one step. */
  replaceMember(id: number, by: number, options: ChangeMembersOptions = {}): Promise<MembersChanged> {
    return this.#change("POST", `/${id}/replace`, { with: by }, options);
  }

  /** Rebuilds the state of a member in quarantine from the leader's. */
  repairMember(id: number, options?: CallOptions): Promise<Camel<Wire["RepairAnswer"]>> {
    return this.#caller.fetch(repeatableCall(`${MEMBERS}/${id}/repair`, options));
  }

  /** Hands leadership to this node, or to the best follower. Is not repeated once it may have happened. */
  transferLeader(to?: number, options?: CallOptions): Promise<Camel<Wire["LeaderAnswer"]>> {
    return this.#caller.fetch(onceCall("POST", "/v1/cluster/leader", undefined, { to }, options));
  }

  /** The digest of the state of one node. */
  digest(options?: CallOptions): Promise<Camel<Wire["DigestAnswer"]>> {
    return this.#caller.fetch(readCall("/v1/cluster/digest", undefined, options));
  }

  /** Commands that faulted, and work that was put aside for that. */
  faults(options?: CallOptions): Promise<Camel<Wire["FaultsAnswer"]>> {
    return this.#caller.fetch(readCall("/v1/cluster/faults", undefined, options));
  }

  /** Tries work that was put aside again, drops it, or forgets the commands that faulted. */
  handleFaults(
    verb: Wire["FaultsVerb"],
    options: RequestOptions & { work?: string } = {},
  ): Promise<Camel<Wire["FaultsReply"]>> {
    return this.#caller.fetch(writeCall("POST", "/v1/cluster/faults", { verb, work: options.work }, options));
  }

  /** The limited resources of one node, and the accounts that hold most of each. */
  callers(options?: CallOptions): Promise<NodeCallers> {
    return this.#caller.fetch(readCall("/v1/node/callers", undefined, options));
  }

  /** The limits of the cluster. */
  limits(options?: CallOptions): Promise<Limits> {
    return this.#caller.fetch(readCall("/v1/limits", undefined, options));
  }

  /** The version of one node. */
  version(options?: CallOptions): Promise<Version> {
    return this.#caller.fetch(readCall("/version", undefined, options));
  }

  #change(
    method: "POST" | "DELETE",
    verb: string,
    body: object | undefined,
    options: ChangeMembersOptions,
  ): Promise<MembersChanged> {
    checkOptions(options);
    const query = { dry_run: options.dryRun ?? false, force: options.force ?? false };
    return this.#caller.fetch(
      writeCall(method, MEMBERS + verb, body, options, { query, attemptMs: CHANGE_ATTEMPT_MS }),
    );
  }

  /** The status of a member at this address, with the settings of this client. */
  async #ask(address: string): Promise<NodeSays<Status>> {
    return said(address, async () => {
      const { settings } = this.#caller;
      const endpoint = parseEndpoint(address, settings.othersTls);
      if (!endpoint.isTls && settings.token !== undefined) {
        throw new ProtocolError(address, "the token is never sent in clear to an address that was not given");
      }
      const one = new Caller({ ...settings, endpoints: [endpoint], discovers: false });
      return one.fetchFrom<Status>(0, readCall("/v1/cluster/status"), STATUS_TIMEOUT_MS);
    });
  }

  async #ofAll<T>(ask: (node: number) => Promise<T>): Promise<NodeSays<T>[]> {
    return Promise.all(
      this.#caller.settings.endpoints.map(({ address }, node) => said(address, () => ask(node))),
    );
  }
}

/** What a node says, or why it says nothing. */
async function said<T>(address: string, ask: () => Promise<T>): Promise<NodeSays<T>> {
  try {
    return { address, says: await ask() };
  } catch (error) {
    return {
      address,
      error: error instanceof QuorateError ? error : new ProtocolError(address, String(error)),
    };
  }
}

/**
 * What became of a write; `undefined`: it was never decided, its outcome is no longer kept (it is for 15 minutes at least), or it is still
 * on its way and may be decided after this answer.
 */
export function requestOutcome(
  caller: Caller,
  id: string,
  options?: CallOptions,
): Promise<Camel<Wire["RequestAnswer"]> | undefined> {
  return caller.find(
    readCall(namePath("/v1/requests/", id), undefined, options, { about: { requestId: id } }),
  );
}
