/**
 * The tree of keys as far as it was opened.
 *
 * Owns which levels are open and what was read of each, and the rows that follow from that. Reading itself comes in as a function.
 */

import { type ReadonlySignal, signal } from "@preact/signals";
import type { QuorateError } from "quorate";
import { asError } from "../../api/errors.js";
import type { LevelPage, Node } from "./level.js";

/** A level: what is below one prefix. */
interface Level {
  readonly prefix: string;
  nodes: Node[];
  /** Where to go on; `undefined` at the end. */
  next: string | undefined;
  isReading: boolean;
  error: QuorateError | undefined;
}

/** A row of the tree. */
export type Row =
  | { readonly kind: "node"; readonly node: Node; readonly depth: number; readonly isOpen: boolean }
  | { readonly kind: "more"; readonly prefix: string; readonly depth: number; readonly isReading: boolean }
  | { readonly kind: "error"; readonly prefix: string; readonly depth: number; readonly error: QuorateError };

/** Reads a page of a level, from this key on. */
export type ReadLevel = (prefix: string, from: string, signal: AbortSignal) => Promise<LevelPage>;

/** The tree below a prefix. */
export class Tree {
  readonly root: string;
  readonly #read: ReadLevel;
  readonly #levels = new Map<string, Level>();
  readonly #abort = new AbortController();
  readonly #rows = signal<readonly Row[]>([]);
  readonly #isReading = signal(true);

  constructor(root: string, read: ReadLevel) {
    this.root = root;
    this.#read = read;
  }

  /** The rows, from top to bottom. */
  get rows(): ReadonlySignal<readonly Row[]> {
    return this.#rows;
  }

  /** Whether the first page is on its way. */
  get isReading(): ReadonlySignal<boolean> {
    return this.#isReading;
  }

  /** Begins to read. */
  async start(): Promise<void> {
    await this.open(this.root);
    this.#isReading.value = false;
  }

  /** Ends all reading. */
  stop(): void {
    this.#abort.abort();
  }

  /** Opens a part. */
  async open(prefix: string): Promise<void> {
    if (!this.#levels.has(prefix)) {
      this.#levels.set(prefix, { prefix, nodes: [], next: prefix, isReading: false, error: undefined });
      await this.more(prefix);
    }
  }

  /** Closes a part. What was read of it is forgotten, so that it is new when it is opened again. */
  close(prefix: string): void {
    for (const open of [...this.#levels.keys()]) {
      if (open.startsWith(prefix)) {
        this.#levels.delete(open);
      }
    }
    this.#lay();
  }

  /** Reads on where a level was left. */
  async more(prefix: string): Promise<void> {
    const level = this.#levels.get(prefix);
    if (level === undefined || level.isReading || level.next === undefined) {
      return;
    }
    level.isReading = true;
    level.error = undefined;
    this.#lay();
    try {
      const page = await this.#read(prefix, level.next, this.#abort.signal);
      // A part may be at the end of one page and at the beginning of the next.
      const isKnown = page.nodes[0]?.key === level.nodes.at(-1)?.key;
      level.nodes.push(...(isKnown ? page.nodes.slice(1) : page.nodes));
      level.next = page.next;
    } catch (error) {
      if (this.#abort.signal.aborted) {
        return;
      }
      level.error = asError(error);
    }
    level.isReading = false;
    this.#lay();
  }

  /** Lays out the rows anew. */
  #lay(): void {
    const rows: Row[] = [];
    this.#layLevel(this.root, 0, rows);
    this.#rows.value = rows;
  }

  #layLevel(prefix: string, depth: number, rows: Row[]): void {
    const level = this.#levels.get(prefix);
    if (level === undefined) {
      return;
    }
    for (const node of level.nodes) {
      const isOpen = node.kind === "part" && this.#levels.has(node.key);
      rows.push({ kind: "node", node, depth, isOpen });
      if (isOpen) {
        this.#layLevel(node.key, depth + 1, rows);
      }
    }
    if (level.error !== undefined) {
      rows.push({ kind: "error", prefix, depth, error: level.error });
    } else if (level.next !== undefined) {
      rows.push({ kind: "more", prefix, depth, isReading: level.isReading });
    }
  }
}
