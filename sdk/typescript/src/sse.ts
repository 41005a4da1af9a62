/**
 * Server-sent events, taken apart as they come in.
 *
 * Owns their syntax. Pure: is fed pieces of text, and knows neither where they come from nor what the events are about.
 */

/** The longest event taken: a few times the largest entry with its former version. Protects the memory of the caller. */
const MESSAGE_MAX = 16 * 1024 * 1024;

/** One event. */
export interface Message {
  /** `event:` */
  readonly name: string;
  /** `id:`, where there is one. */
  readonly id: string | undefined;
  /** `data:`, several lines joined. */
  readonly data: string;
}

/** What came in and is not taken yet. */
export class Messages {
  #pending = "";
  #name = "";
  #id: string | undefined;
  #data: string[] = [];
  #size = 0;
  #isBegun = false;

  /** Takes a piece; the events that are whole by it. Throws where an event is too long. */
  feed(piece: string): Message[] {
    const lines = (this.#pending + piece).split("\n");
    this.#pending = lines.pop() ?? "";
    const whole: Message[] = [];
    for (const line of lines) {
      const message = this.#takeLine(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (message !== undefined) {
        whole.push(message);
      }
    }
    if (this.#size + this.#pending.length > MESSAGE_MAX) {
      throw new RangeError(`an event of more than ${MESSAGE_MAX} characters`);
    }
    return whole;
  }

  #takeLine(line: string): Message | undefined {
    if (line === "") {
      return this.#isBegun ? this.#end() : undefined;
    }
    this.#size += line.length;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") {
      this.#name = value;
    } else if (field === "id") {
      this.#id = value;
    } else if (field === "data") {
      this.#data.push(value);
    } else {
      // A comment, which only shows that the stream lives, or something of a later version.
      return undefined;
    }
    this.#isBegun = true;
    return undefined;
  }

  #end(): Message {
    const message = { name: this.#name, id: this.#id, data: this.#data.join("\n") };
    [this.#name, this.#id, this.#data, this.#size, this.#isBegun] = ["", undefined, [], 0, false];
    return message;
  }
}
