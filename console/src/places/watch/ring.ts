/**
 * The last of many, within bounds.
 *
 * Owns how much is kept: so many, and together so heavy at most. What is older is let go, and counted. Pure.
 */

/** A ring. */
export class Ring<Item> {
  readonly #countMax: number;
  readonly #weightMax: number;
  readonly #weigh: (item: Item) => number;
  #items: (Item | undefined)[] = [];
  /** So many at the front of the array are let go already: nothing is there any more. */
  #gone = 0;
  #weight = 0;
  #dropped = 0;

  constructor(countMax: number, weightMax: number, weigh: (item: Item) => number) {
    this.#countMax = countMax;
    this.#weightMax = weightMax;
    this.#weigh = weigh;
  }

  /** How many there are. */
  get length(): number {
    return this.#items.length - this.#gone;
  }

  /** How many were let go. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Adds one. The newest is kept, however heavy it is. */
  push(item: Item): void {
    this.#items.push(item);
    this.#weight += this.#weigh(item);
    while (this.length > 1 && (this.length > this.#countMax || this.#weight > this.#weightMax)) {
      this.#weight -= this.#weigh(this.#items[this.#gone] as Item);
      this.#items[this.#gone] = undefined;
      this.#gone += 1;
      this.#dropped += 1;
    }
    // Moved together now and then: to take off the front each time would move all of them each time.
    if (this.#gone * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#gone);
      this.#gone = 0;
    }
  }

  /** The one at this place, the newest first. */
  at(place: number): Item | undefined {
    return place < this.length ? this.#items[this.#items.length - 1 - place] : undefined;
  }

  /** All of them as they are, the newest first. */
  snapshot(): Item[] {
    return this.#items.slice(this.#gone).reverse() as Item[];
  }

  /** Forgets all. */
  clear(): void {
    this.#items = [];
    [this.#gone, this.#weight, this.#dropped] = [0, 0, 0];
  }
}

/** Over so many seconds a rate is measured. */
const SECONDS = 5;

/** How many come in a second, over the last few. */
export class Rate {
  readonly #counts = new Array<number>(SECONDS + 1).fill(0);
  #second = 0;

  /** One came. */
  note(nowMs: number): void {
    this.#moveTo(nowMs);
    this.#counts[0] = (this.#counts[0] ?? 0) + 1;
  }

  /** How many a second, in the last whole ones. */
  perSecond(nowMs: number): number {
    this.#moveTo(nowMs);
    return this.#counts.slice(1).reduce((sum, count) => sum + count, 0) / SECONDS;
  }

  #moveTo(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000);
    for (let steps = Math.min(second - this.#second, SECONDS + 1); steps > 0; steps -= 1) {
      this.#counts.pop();
      this.#counts.unshift(0);
    }
    this.#second = second;
  }
}
