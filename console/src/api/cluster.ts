/** Requests about the cluster itself: its state, its members, who leads, whom it takes us for. */

import type { Members, MembersChanged, NodeCallers, Self, Status } from "quorate";
import { type Request, target } from "./request.js";

/** The cluster as the node sees it that answers. */
export function readStatus(): Request<Status> {
  return {
    title: "Read the state of the cluster, as the node sees it that answers",
    writes: false,
    http: { method: "GET", target: "/v1/cluster/status" },
    cli: ["status"],
    python: "print(client.status())",
    typescript: "console.log(await client.cluster.status());",
    run: (client, signal) => client.cluster.status({ signal }),
  };
}

/** All members, as the leader knows them. */
export function readMembers(): Request<Members> {
  return {
    title: "List the members, as the leader knows them",
    writes: false,
    http: { method: "GET", target: "/v1/cluster/members" },
    cli: ["member", "list"],
    python: "print(client.members.get())",
    typescript: "console.log(await client.cluster.members());",
    run: (client, signal) => client.cluster.members({ signal }),
  };
}

/** The limited resources of the node that answers, and who holds them. */
export function readCallers(): Request<NodeCallers> {
  return {
    title: "Read who holds most of each resource of the node that answers",
    writes: false,
    http: { method: "GET", target: "/v1/node/callers" },
    cli: ["node", "callers", "--top", "20"],
    python: "print(client.node_callers())",
    typescript: "console.log(await client.cluster.callers());",
    run: (client, signal) => client.cluster.callers({ signal }),
  };
}

/** Whom the cluster takes us for. */
export function readSelf(): Request<Self> {
  return {
    title: "Ask whom the cluster takes you for, and what you may do",
    writes: false,
    http: { method: "GET", target: "/v1/access/self" },
    cli: ["whoami"],
    python: "print(client.access.who_am_i())",
    typescript: "console.log(await client.access.whoAmI());",
    run: (client, signal) => client.access.whoAmI({ signal }),
  };
}

/** Hands leadership to a member. */
export function transferLeader(to: number): Request<{ readonly leaderId: number }> {
  return {
    title: `Hand leadership to node ${to}`,
    writes: true,
    http: { method: "POST", target: "/v1/cluster/leader", body: `{"to":${to}}` },
    cli: ["leader", "transfer", String(to)],
    python: `client.transfer_leader(${to})`,
    typescript: `await client.cluster.transferLeader(${to});`,
    run: (client, signal) => client.cluster.transferLeader(to, { signal }),
  };
}

/** What can be done to one member. */
export type MemberVerb = "promote" | "demote" | "remove";

/** How each verb is said. */
const MEMBER_TITLES: Record<MemberVerb, (id: number) => string> = {
  promote: (id) => `Give node ${id} a vote`,
  demote: (id) => `Take the vote of node ${id}`,
  remove: (id) => `Remove node ${id}`,
};

/** Changes the members, or only asks what that would come to. */
export function changeMember(verb: MemberVerb, id: number, dryRun: boolean): Request<MembersChanged> {
  const path = verb === "remove" ? `/v1/cluster/members/${id}` : `/v1/cluster/members/${id}/${verb}`;
  return {
    title: dryRun ? `Dry run: ${MEMBER_TITLES[verb](id)}` : MEMBER_TITLES[verb](id),
    writes: !dryRun,
    http: {
      method: verb === "remove" ? "DELETE" : "POST",
      target: target(path, { dry_run: dryRun, force: false }),
      ...(verb === "remove" ? {} : { body: "{}" }),
    },
    cli: ["member", verb, String(id), ...(dryRun ? ["--dry-run"] : [])],
    python: `client.members.${verb}(${id}${dryRun ? ", dry_run=True" : ""})`,
    typescript: `await client.cluster.${verb}Member(${id}${dryRun ? ", { dryRun: true }" : ""});`,
    run: (client, signal) => client.cluster[`${verb}Member`](id, { signal, dryRun }),
  };
}
