/** Which ports the helper for tests of other programs takes, and that they stay its own. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { BLOCK, PORTS_FROM, Ports } from "../src/node/ports.js";

test("ports are none that outgoing connections get", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const given = (server.address() as AddressInfo).port;
  const { numbers } = await Ports.take(20).finally(() => server.close());
  assert.equal(new Set(numbers).size, 20);
  const below = Math.max(given, PORTS_FROM + 1_000);
  assert.ok(
    numbers.every((port) => port >= PORTS_FROM && port < below),
    `${numbers} and ${given}`,
  );
});

test("ports that are held are nobody else's, though nobody listens there", async () => {
  const held = await Ports.take(1);
  const port = held.numbers[0] ?? 0;
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  const others = new Ports();
  await others.claim(port - ((port - PORTS_FROM) % BLOCK));
  assert.deepEqual(others.numbers, []);
  server.close();
  await held.release();
});
