/**
 * Ports of this machine that are a test's own as long as it holds them.
 *
 * Owns the choice of ports; the helpers in other languages choose alike. Never gives a port of outgoing connections: one of these could have
 * it before a node listens there, or while a node is down, and a node that dials a peer at such a port could even reach itself.
 *
 * Ports lie in blocks. A listener at the first of a block holds the others: they are nobody else's then, though nobody listens there. The
 * system ends that with the process, however it ends.
 */

import { randomInt } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";

/** Blocks lie from here up to the ports of outgoing connections. */
export const PORTS_FROM = 10_000;
/** Ports of a block, with the first. */
export const BLOCK = 8;
/** Where the ports of outgoing connections begin, if the system does not say otherwise. */
const OUTGOING_FROM = 32_768;
/** How many blocks are looked at to find some that are free. */
const BLOCKS_LOOKED_AT = 1_000;

/** Ports that nobody listens on, and that no other test is given until they are released. */
export class Ports {
  readonly numbers: number[] = [];
  readonly #holders: Server[] = [];

  /** Takes this many, all different. */
  static async take(count: number): Promise<Ports> {
    const highest = Math.max(outgoingFrom(), PORTS_FROM + 1_000);
    const blocks = Math.floor((highest - PORTS_FROM) / BLOCK);
    const ports = new Ports();
    for (let looked = 0; looked < BLOCKS_LOOKED_AT && ports.numbers.length < count; looked += 1) {
      await ports.claim(PORTS_FROM + randomInt(blocks) * BLOCK);
    }
    if (ports.numbers.length < count) {
      await ports.release();
      throw new Error(`there are not ${count} free ports from ${PORTS_FROM} to ${highest}`);
    }
    ports.numbers.splice(count);
    return ports;
  }

  /** Takes the block with this first port, unless it is another's, without the ports that other programs listen on. */
  async claim(first: number): Promise<void> {
    const holder = await listen(first);
    if (holder === undefined) {
      return;
    }
    this.#holders.push(holder.unref());
    for (let port = first + 1; port < first + BLOCK; port += 1) {
      const probe = await listen(port);
      if (probe !== undefined) {
        await close(probe);
        this.numbers.push(port);
      }
    }
  }

  /** Gives them back. */
  async release(): Promise<void> {
    await Promise.all(this.#holders.splice(0).map((holder) => close(holder)));
  }
}

/** Listens on a port, unless somebody has it. */
async function listen(port: number): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy()).listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
    return server;
  } catch {
    return undefined;
  }
}

async function close(server: Server): Promise<void> {
  await once(server.close(), "close");
}

/** The first port that the system gives to outgoing connections. */
function outgoingFrom(): number {
  const range = "/proc/sys/net/ipv4/ip_local_port_range";
  const first = existsSync(range) ? Number.parseInt(readFileSync(range, "utf8"), 10) : Number.NaN;
  return Number.isNaN(first) ? OUTGOING_FROM : first;
}
