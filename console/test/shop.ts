/** A cluster with what a shop may have in it, for pictures: users, orders that changed, services, locks, queues. Owns all of that data. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, op } from "quorate";
import { atEnd, Cluster, coordinate } from "./support.js";

const ROOT = "0123456789abcdef0123456789abcdef0123456789abcdef";
const CUSTOMERS = [
  { name: "Ada Brandt", city: "Ulm" },
  { name: "Marek Novák", city: "Brno" },
  { name: "Inès Laurent", city: "Lyon" },
  { name: "Jonas Berg", city: "Bergen" },
  { name: "Sofia Rossi", city: "Parma" },
] as const;
const STATES = ["sent", "sent", "sent", "paid", "new", "paid", "sent", "returned"];
const ARTICLES = [
  { article: "pears", price: 3.2 },
  { article: "plums", price: 2.4 },
  { article: "hazelnuts", price: 7.9 },
  { article: "honey", price: 6.5 },
];
const MAIL_ERRORS = [
  "550 no such mailbox",
  "421 service not available, closing the channel",
  "timed out after 30 s",
];

/** The cluster and where to look. */
export interface Shop {
  readonly cluster: Cluster;
  /** The token of somebody who may do everything. */
  readonly token: string;
  /** A session that holds something of each kind. */
  readonly session: string;
  /** The revision from which on a watch has something to show. */
  readonly since: string;
}

/** Starts and fills it; stopped after the tests of the file. */
export async function startShop(): Promise<Shop> {
  const home = mkdtempSync(join(tmpdir(), "quorate-console-"));
  atEnd(() => rmSync(home, { recursive: true }));
  const file = join(home, "root.token");
  writeFileSync(file, ROOT, { mode: 0o600 });
  const cluster = await Cluster.start({
    nodeArgs: ["--auth", "required", "--root-token-file", file],
    token: ROOT,
  });
  const { client } = cluster;
  await client.bulk(orders().map(([key, value]) => op.put(key, value)));
  await fillStock(client);
  const users = await fillAccess(cluster);
  const session = await coordinate(client);
  for (const [owner, name] of [
    ["billing-1", "billing/month-end"],
    ["billing-1", "invoices/number"],
    ["migrator", "schema/v42"],
  ] as const) {
    await (await client.session({ owner, ttlMs: 60_000 })).lock(name);
  }
  await fillTasks(client);
  const since = await lastChanges(users);
  return { cluster, token: ROOT, session, since };
}

function orders(): [string, object][] {
  return Array.from({ length: 148 }, (_, n) => {
    const lines = [0, 1].map((at) => ({
      ...(ARTICLES[(n + at * 3) % ARTICLES.length] ?? {}),
      count: ((n + at) % 4) + 1,
    }));
    return [
      `orders/2026-${String(n).padStart(4, "0")}`,
      {
        status: STATES[n % STATES.length],
        total: Number((4.8 + ((n * 7.35) % 60)).toFixed(2)),
        customer: CUSTOMERS[n % CUSTOMERS.length],
        lines,
      },
    ];
  });
}

async function fillStock(client: Client): Promise<void> {
  const left = { pears: 140, plums: 85, hazelnuts: 12, honey: 31 };
  for (const [article, count] of Object.entries(left)) {
    await client.put(`stock/${article}`, { left: count, shelf: `B-${count % 17}` });
  }
  await client.put("config/shop", { currency: "EUR", free_shipping_from: 40, maintenance: false });
  await client.put("config/features/new-checkout", { share: 0.25, users: ["staff"] });
  for (const [name, port] of [
    ["web-1", 8080],
    ["web-2", 8080],
    ["search-1", 9200],
  ] as const) {
    await client.put(`services/${name}`, { host: `${name}.shop.example`, port });
  }
  await client.put("version", 42);
}

/** Users and roles, and a client for each who writes. */
async function fillAccess({ client: { access }, endpoints }: Cluster): Promise<readonly Client[]> {
  await access.setRole("orders", [
    { permission: "write", prefix: "orders/" },
    { permission: "lock", prefix: "orders/" },
    { permission: "read", prefix: "stock/" },
  ]);
  await access.setRole("warehouse", [
    { permission: "write", prefix: "stock/" },
    { permission: "write", prefix: "orders/" },
  ]);
  await access.setRole("reports", [{ permission: "read", prefix: "" }]);
  await access.setUser("shop", ["orders"]);
  await access.setUser("warehouse", ["warehouse"]);
  await access.setUser("auditor", ["reports"]);
  await access.setUser("intern", []);
  await access.createToken("auditor", { note: "monthly report" });
  const writers = [];
  for (const [user, note] of [
    ["shop", "web-1 and web-2"],
    ["warehouse", "the scales"],
  ] as const) {
    const { token } = await access.createToken(user, { note, expiresInMs: 90 * 86_400_000 });
    const client = new Client({ endpoints, token });
    atEnd(() => client.close());
    writers.push(client);
  }
  return writers;
}

async function fillTasks(client: Client): Promise<void> {
  const mails = client.tasks("mails");
  for (let n = 0; n < 6; n += 1) {
    await mails.schedule(
      { to: `customer-${n}@example.org`, template: "welcome" },
      { id: `welcome-${n}`, maxAttempts: 1 },
    );
  }
  for (const [at, task] of (await mails.claim({ limit: 3, worker: "mailer-1" })).entries()) {
    await task.fail({ error: MAIL_ERRORS[at] ?? "" });
  }
  await mails.claim({ limit: 1, worker: "mailer-2", leaseMs: 600_000 });
  const [reports, invoices] = [client.tasks("reports"), client.tasks("invoices")];
  await reports.schedule({ kind: "daily" }, { id: "daily", cron: "0 3 * * *", zone: "Europe/Berlin" });
  for (let n = 0; n < 12; n += 1) {
    await invoices.schedule({ order: `orders/2026-00${10 + n}` }, { delayMs: (n + 1) * 600_000 });
  }
}

/** What happens to a few orders; one of them goes all the way. Returns the revision of the first change. */
async function lastChanges([shop, warehouse]: readonly Client[]): Promise<string> {
  if (shop === undefined || warehouse === undefined) {
    throw new Error("somebody has to write");
  }
  const order = "orders/2026-0147";
  const { revision } = await shop.patch(order, { status: "paid", paid_at: "2026-11-26T08:12:40Z" });
  await shop.insert("orders/2026-0148", { status: "new", total: 12.8, customer: CUSTOMERS[1] });
  await warehouse.patch(order, { status: "packed", parcel: { carrier: "DHL", number: "DE-4711-08" } });
  await shop.patch("orders/2026-0148", { status: "paid" });
  await shop.remove("orders/2026-0003");
  await warehouse.patch(order, { status: "sent", sent_at: "2026-11-26T10:31:05Z" });
  for (const n of ["0141", "0142", "0144"]) {
    await warehouse.patch(`orders/2026-${n}`, { status: "sent", parcel: { carrier: "DHL" } });
  }
  return revision;
}
