/**
 * Which node to ask next.
 *
 * Owns what is known of the nodes: who leads, who failed lately, which of them are of another cluster. Pure: time comes in as an argument,
 * nothing is sent.
 *
 * Ours is the cluster that the first answer names, until the client goes over to another one: at once when more than half of the given
 * nodes, where there are several, said last that they are of it; else after a *doubt* of ten seconds. Doubt begins with a foreign word of a
 * given node, goes on while given nodes repeat it, within five seconds each, and ends with any word of ours, whoever says it, also a member
 * that was discovered. Silence is no word: an idle client never goes over, and nobody is locked out by nodes that are gone.
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

/** Pause between two looks at a node of another cluster, which may have been put right. */
export const FOREIGN_PAUSE_MS = 30_000;
/** Doubt of so long takes a client over to another cluster: the own one leads again sooner after most faults, and a restore takes longer. */
const DOUBT_MIN_MS = 10_000;
/** Foreign words further apart begin a doubt anew: nobody can tell what was there between them. */
export const DOUBT_GAP_MS = 5_000;

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
}

/** A foreign word that given nodes say again and again, since nobody of our cluster said anything. */
interface Doubt {
  readonly theirs: string;
  readonly since: number;
  last: number;
}

function unknown(id?: number): Known {
  return { id, failures: 0, avoidUntil: 0, isGone: false, cluster: undefined };
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
  /** The id of ours. */
  #cluster: string | undefined;
  /** The clusters that given nodes named since ours was last heard; none while there is no doubt. */
  #doubts: Doubt[] = [];
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

  /**
   * The node to ask now. `not` has just failed this very request: it comes last. One of another cluster is not asked, unless it is the only
   * one that was given, and no other is well.
   */
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
    // The only one that was given may be an address of several.
    const isOnly = (node: number) => this.#given === 1 && node === 0;
    const asked = turn.filter((node) => !this.#at(node).isGone && (isOnly(node) || !this.isForeign(node)));
    const others = asked.filter((node) => node !== not);
    const well = others.find((node) => this.#isWell(node, now));
    // The one that failed, where no other is asked. Where all that were given are of other clusters, one of them says so once more.
    const pick = well ?? this.#mostRested(others) ?? asked[0] ?? this.#next % this.#given;
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
    const wasForeign = this.isForeign(node);
    known.cluster = told;
    if (told === this.#cluster) {
      this.#doubts = [];
      return "ours";
    }
    const isGiven = node < this.#given;
    if (
      this.#cluster === undefined ||
      (isGiven && (this.#doubt(told, now) >= DOUBT_MIN_MS || this.#hasMajority(told)))
    ) {
      this.#goOver(told);
      return "ours";
    }
    known.id = undefined;
    this.#discoverSoon(now);
    this.#findLeader();
    return wasForeign ? "known" : "news";
  }

  /** A given node named another cluster than ours: for how long that goes on. */
  #doubt(theirs: string, now: number): number {
    this.#doubts = this.#doubts.filter(({ last }) => now - last <= DOUBT_GAP_MS);
    const known = this.#doubts.find((doubt) => doubt.theirs === theirs);
    if (known === undefined) {
      this.#doubts.push({ theirs, since: now, last: now });
      return 0;
    }
    known.last = now;
    return now - known.since;
  }

  /** Whether more than half of the given nodes said this one last. A single node is no majority. */
  #hasMajority(told: string): boolean {
    const votes = this.#nodes.slice(0, this.#given).filter(({ cluster }) => cluster === told).length;
    return this.#given > 1 && votes * 2 > this.#given;
  }

  /** Another cluster is ours from now on: terms, leaders and ids of the former say nothing any more. */
  #goOver(theirs: string): void {
    this.#cluster = theirs;
    this.#doubts = [];
    this.#term = 0n;
    this.#leaderId = undefined;
    for (const [place, node] of this.#nodes.entries()) {
      if (this.isForeign(place)) {
        node.id = undefined;
      }
    }
    this.#findLeader();
  }

  /** Whether its last word was another cluster than ours. */
  isForeign(node: number): boolean {
    const { cluster } = this.#at(node);
    return cluster !== undefined && this.#cluster !== undefined && cluster !== this.#cluster;
  }

  /** While in doubt: a given node that says it is of another cluster, and of which. */
  get stranger(): { readonly node: number; readonly cluster: string } | undefined {
    const theirs = this.#doubts.at(-1)?.theirs;
    const node = this.#nodes.findIndex(
      ({ cluster }, place) => place < this.#given && cluster !== undefined && cluster === theirs,
    );
    return theirs === undefined || node < 0 ? undefined : { node, cluster: theirs };
  }

  /** Whether the doubt goes on: another word now would be one without a gap. */
  isInDoubt(now: number): boolean {
    return this.#doubts.some(({ last }) => now - last <= DOUBT_GAP_MS);
  }

  /** A node said who it is. */
  introduce(node: number, id: number, hint: LeaderHint): void {
    this.#at(node).id = id;
    this.onAnswer(node, hint);
    this.#findLeader();
  }

  /**
   * Whether the nodes should be asked who they are now: a leader is known by an id that belongs to none of them, or a node was of another
   * cluster. Says yes at most once a second, since the leader may well not be among the endpoints, and for a node of another cluster now and
   * then while ours is heard.
   */
  beginIntroduction(now: number): boolean {
    const isStranger = this.#leaderId !== undefined && this.#leader === undefined && this.#nodes.length > 1;
    const hasForeign = this.#nodes.some(({ isGone }, node) => !isGone && this.isForeign(node));
    const pause = isStranger || this.#doubts.length > 0 ? INTRODUCTION_PAUSE_MS : FOREIGN_PAUSE_MS;
    const isRested = this.#introducedAt === undefined || now - this.#introducedAt >= pause;
    const begins = (isStranger || hasForeign) && isRested;
    if (begins) {
      this.#introducedAt = now;
    }
    return begins;
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
    return this.#at(node).avoidUntil <= now && !this.isForeign(node);
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
