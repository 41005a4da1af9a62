/**
 * Answers that come in pages.
 *
 * Owns going from page to page by the cursor, and being looped over item by item.
 */

/** A page: its items stand in a field of their own; with a cursor there is more. */
export interface PageOf {
  /** Where the next page begins; absent on the last. */
  readonly cursor?: string;
}

/**
 * What comes in pages, asked for one after the other: `for await` gives the items of all, {@link page} one page, {@link pages} each.
 * All pages of entries show the same moment.
 */
export class Pages<Item, Page extends PageOf> implements AsyncIterable<Item> {
  readonly #fetch: (cursor: string | undefined) => Promise<Page>;
  readonly #items: (page: Page) => readonly Item[];

  /** Made by the client. */
  constructor(fetch: (cursor: string | undefined) => Promise<Page>, items: (page: Page) => readonly Item[]) {
    this.#fetch = fetch;
    this.#items = items;
  }

  /** The first page, or the one after the page that ended with this cursor. */
  page(cursor?: string): Promise<Page> {
    return this.#fetch(cursor);
  }

  /** All pages, one by one. A page may be empty and yet have others after it. */
  async *pages(): AsyncGenerator<Page, void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.#fetch(cursor);
      yield page;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  /** The items of all pages, in memory. */
  async all(): Promise<Item[]> {
    const items: Item[] = [];
    for await (const page of this.pages()) {
      items.push(...this.#items(page));
    }
    return items;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) {
      yield* this.#items(page);
    }
  }
}
