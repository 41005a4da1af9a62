/**
 * Which node to ask next.
 *
 * Owns what is known of the nodes: who leads, who failed lately, which of them are of another cluster. Pure: time comes in as an argument,
 * nothing is sent.
 */

/** How long a node is left alone after its first failure; doubles with each further one. */
export const AVOID_MIN_MS = 100;
/** At most this long, so that a node that came back is soon used again. */
const AVOID_MAX_MS = 3_000;
/** Pause between two rounds of asking the nodes who they are. */
export const INTRODUCTION_PAUSE_MS = 1_000;
/** Pause between two looks at who the members are: they change rarely, and a client outlives more than one change. */
export const DISCOVERY_PAUSE_MS = 30_000;
/** The first look comes once a client has lived a little; what is over by then needs none. */
export const DISCOVERY_FIRST_MS = 1_000;

/** How long a node of another cluster is not asked: it is somebody's mistake, which takes its time to be mended. */
export const FOREIGN_MS = 30_000;
/**
 * A client of one endpoint goes over to the cluster that it hears there when it heard nothing of its own for so long: several nodes may
 * stand behind the one address, and an outage of a restore takes longer.
 */
export const FORGET_CLUSTER_MS = 10_000;

/** The leader, which saves forwarding, or any node in turn. */
export type Preference = "leader" | "any";

/** What every answer says about the cluster, in its headers. */
export interface LeaderHint {
  /** Raft term of the node that answered. */
  readonly term: bigint;
  /** The leader it knows. */
  readonly leaderId: number | undefined;
  /** The id of its cluster, where it says that. */
  readonly cluster?: string | undefined;
}

/** An answer that says nothing of the cluster. */
export const NO_HINT: LeaderHint = { term: 0n, leaderId: undefined };

interface Known {
  id: number | undefined;
  failures: number;
  avoidUntil: number;
  /** No member any more. Never of a node that was given. */
  isGone: boolean;
  /** The id of its cluster, as it said last. */
  cluster: string | undefined;
  /** Until when it is left alone, where that is another cluster than ours. */
  foreignUntil: number;
}

function unknown(id?: number): Known {
  return { id, failures: 0, avoidUntil: 0, isGone: false, cluster: undefined, foreignUntil: 0 };
}

/**
 * The nodes, by their place in the list of endpoints: those that were given, then members that were discovered. Discovered ones are
 * asked only while not every given one is well, so that a client of one node stays with it.
 */
export class Endpoints {
  readonly #nodes: Known[];
  readonly #given: number;
  /** Highest term seen; what older terms say of the leader is ignored. */
  #term = 0n;
  #leaderId: number | undefined;
  /** The leader's place, where it is in the list. */
  #leader: number | undefined;
  #next: number;
  /**
   * The id of the cluster that most of the given nodes say, each by its last word, so that a client follows them through a restore. One that
   * was believed stays where as many speak for it as for another. Members that were discovered have no say.
   */
  #cluster: string | undefined;
  /** When a given node last spoke for it. */
  #clusterHeardAt = 0;
  #introducedAt: number | undefined;
  /** When to look for members; `undefined`: never. */
  #discoverAt: number | undefined;

  /** `count` nodes of which nothing is known. `start` is where the turn begins, so that clients spread. */
  constructor(count: number, start: number) {
    this.#nodes = Array.from({ length: count }, () => unknown());
    this.#given = count;
    this.#next = start % count;
  }

  /** Members are discovered from now on. */
  discover(now: number): void {
    this.#discoverAt = now + DISCOVERY_FIRST_MS;
  }

  /** Whether members are discovered. */
  get discovers(): boolean {
    return this.#discoverAt !== undefined;
  }

  /** How many nodes there are. */
  get length(): number {
    return this.#nodes.length;
  }

  /** The node to ask now. `not` has just failed this very request: it comes last. */
  pick(preference: Preference, not: number | undefined, now: number): number {
    const reach = this.#reach(now);
    const leader = this.#leader;
    if (
      preference === "leader" &&
      leader !== undefined &&
      leader < reach &&
      leader !== not &&
      this.#isWell(leader, now)
    ) {
      return leader;
    }
    const turn = Array.from({ length: reach }, (_, step) => (this.#next + step) % reach);
    // The only one that was given is asked whatever it said: it may be an address of several.
    const asked = turn.filter(
      (node) => !this.#at(node).isGone && (this.#given === 1 || !this.isForeign(node, now)),
    );
    const others = asked.filter((node) => node !== not);
    const well = others.find((node) => this.#isWell(node, now));
    // The one that failed, where no other is asked: a given node that speaks for our cluster is neither gone nor left alone.
    const pick = well ?? this.#mostRested(others) ?? asked[0] ?? 0;
    this.#next = (pick + 1) % reach;
    return pick;
  }

  /** A node answered. */
  onAnswer(node: number, hint: LeaderHint): void {
    const known = this.#at(node);
    known.failures = 0;
    known.avoidUntil = 0;
    this.#hear(hint);
  }

  /** A node could not be reached, broke off, or cannot serve. */
  onFailure(node: number, now: number): void {
    const known = this.#at(node);
    known.avoidUntil = now + Math.min(AVOID_MIN_MS * 2 ** Math.min(known.failures, 8), AVOID_MAX_MS);
    known.failures += 1;
    this.#discoverSoon(now);
    if (this.#leader === node) {
      this.#leader = undefined;
      this.#leaderId = undefined;
    }
  }

  /** The cluster that the nodes are believed to be of. */
  get cluster(): string | undefined {
    return this.#cluster;
  }

  /** A node said of which cluster it is: ours, or another one, which was not known of it, or was. */
  onCluster(node: number, told: string, now: number): "ours" | "news" | "known" {
    const known = this.#at(node);
    const wasOther = this.#saysOther(known);
    known.cluster = told;
    if (node < this.#given) {
      this.#countVote(told, now);
    }
    if (!this.#saysOther(known)) {
      return "ours";
    }
    known.id = undefined;
    known.foreignUntil = now + FOREIGN_MS;
    this.#discoverSoon(now);
    this.#findLeader();
    return wasOther ? "known" : "news";
  }

  /** Goes over to another cluster where more of the given nodes are of it: terms and leaders of the former say nothing any more. */
  #countVote(told: string, now: number): void {
    const ours = this.#cluster;
    const isOver =
      ours === undefined ||
      (this.#given === 1
        ? now - this.#clusterHeardAt >= FORGET_CLUSTER_MS
        : this.#votes(told) > this.#votes(ours));
    if (told !== ours && isOver) {
      this.#cluster = told;
      this.#term = 0n;
      this.#leaderId = undefined;
      for (const node of this.#nodes.filter((node) => this.#saysOther(node))) {
        node.id = undefined;
      }
      this.#findLeader();
    }
    if (told === this.#cluster) {
      this.#clusterHeardAt = now;
    }
  }

  #votes(cluster: string): number {
    return this.#nodes.slice(0, this.#given).filter((node) => node.cluster === cluster).length;
  }

  /** Whether its last word was another cluster than ours. */
  #saysOther({ cluster }: Known): boolean {
    return cluster !== undefined && cluster !== this.#cluster;
  }

  /** Whether a node told lately that it is of another cluster. */
  isForeign(node: number, now: number): boolean {
    const known = this.#at(node);
    return this.#saysOther(known) && known.foreignUntil > now;
  }

  /** The nodes that told so, with their clusters. */
  strangers(now: number): [node: number, cluster: string][] {
    return this.#nodes.flatMap(({ cluster }, node) =>
      cluster !== undefined && this.isForeign(node, now) ? [[node, cluster] as [number, string]] : [],
    );
  }

  /** A node said who it is. */
  introduce(node: number, id: number, hint: LeaderHint): void {
    this.#at(node).id = id;
    this.onAnswer(node, hint);
    this.#findLeader();
  }

  /**
   * Whether the nodes should be asked for their ids now: a leader is known by an id that belongs to none of them. Says yes at most
   * once a second, since the leader may well not be among the endpoints.
   */
  beginIntroduction(now: number): boolean {
    const isStranger = this.#leaderId !== undefined && this.#leader === undefined;
    const isRested = this.#introducedAt === undefined || now - this.#introducedAt >= INTRODUCTION_PAUSE_MS;
    if (isStranger && isRested && this.#nodes.length > 1) {
      this.#introducedAt = now;
      return true;
    }
    return false;
  }

  /** Whether to look now who the members are. */
  beginDiscovery(now: number): boolean {
    const isDue = this.#discoverAt !== undefined && this.#discoverAt <= now;
    if (isDue) {
      this.#discoverAt = now + DISCOVERY_PAUSE_MS;
    }
    return isDue;
  }

  /** Whether one of the nodes is known to be this member. If it was gone, it is back. */
  isKnown(id: number): boolean {
    const known = this.#nodes.find((node) => node.id === id);
    if (known !== undefined) {
      known.isGone = false;
    }
    return known !== undefined;
  }

  /** A member was discovered, and has the next place. */
  add(id: number): void {
    this.#nodes.push(unknown(id));
    this.#findLeader();
  }

  /** These are all members: discovered ones that are none any more are gone. */
  retain(members: readonly number[]): void {
    for (const node of this.#nodes.slice(this.#given)) {
      node.isGone = node.id === undefined || !members.includes(node.id);
    }
    this.#findLeader();
  }

  #at(node: number): Known {
    const known = this.#nodes[node];
    if (known === undefined) {
      throw new RangeError(`there are ${this.#nodes.length} nodes, no node ${node}`);
    }
    return known;
  }

  /** How many nodes, from the first, may be asked. */
  #reach(now: number): number {
    const given = this.#nodes.slice(0, this.#given);
    return given.every((_, node) => this.#isWell(node, now)) ? this.#given : this.#nodes.length;
  }

  #isWell(node: number, now: number): boolean {
    return this.#at(node).avoidUntil <= now && !this.isForeign(node, now);
  }

  /** One that is not well may have been replaced. */
  #discoverSoon(now: number): void {
    if (this.#discoverAt !== undefined) {
      this.#discoverAt = Math.min(this.#discoverAt, now + DISCOVERY_FIRST_MS);
    }
  }

  #mostRested(nodes: readonly number[]): number | undefined {
    const first = nodes[0];
    if (first === undefined) {
      return undefined;
    }
    return nodes.reduce(
      (best, node) => (this.#at(node).avoidUntil < this.#at(best).avoidUntil ? node : best),
      first,
    );
  }

  #hear(hint: LeaderHint): void {
    const isNews = hint.leaderId !== undefined && hint.leaderId !== this.#leaderId;
    if (hint.term < this.#term || (hint.term === this.#term && !isNews)) {
      return;
    }
    this.#term = hint.term;
    this.#leaderId = hint.leaderId;
    this.#findLeader();
  }

  #findLeader(): void {
    const id = this.#leaderId;
    const place = this.#nodes.findIndex((node) => id !== undefined && node.id === id && !node.isGone);
    this.#leader = place < 0 ? undefined : place;
  }
}
