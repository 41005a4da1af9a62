import type { Members, Status } from "quorate";
import { expect, test } from "vitest";
import { adviceOf, outlookOf } from "./advice.js";

const ORIGIN = "https://node1:7100";

const STATUS: Status = {
  clusterId: "c",
  nodeId: 1,
  incarnation: "i",
  version: "0.1.0",
  role: "leader",
  ready: true,
  term: "3",
  leaderId: 1,
  members: [],
  lastLogIndex: 9,
  committedIndex: 9,
  appliedIndex: 9,
  snapshotIndex: 0,
  purgedIndex: 0,
  revision: "9",
  oldestRevision: "1",
  clusterClockMs: 0,
  digest: "d",
  level: 4,
  levelKnown: 4,
  diskFreeBytes: 500,
  diskSizeBytes: 1_000,
};

/** Voters, of which these are not heard of, and learners. */
function members(
  voters: number,
  dead: readonly number[] = [],
  learners: readonly number[] = [],
  lag = 0,
): Members {
  const one = (id: number, role: "voter" | "learner") => ({
    id,
    role,
    leader: id === 1,
    healthy: !dead.includes(id),
    lag,
    peerAddr: `10.0.0.${id}:7200`,
    clientAddr: `10.0.0.${id}:7100`,
  });
  const all = [
    ...Array.from({ length: voters }, (_, at) => one(at + 1, "voter")),
    ...learners.map((id) => one(id, "learner")),
  ];
  return { leaderId: 1, changing: false, needed: Math.floor(voters / 2) + 1, prospect: "", members: all };
}

const said = (status: Status, all?: Members) =>
  adviceOf(status, all, ORIGIN).map(({ tone, title, command }) => [tone, title, command]);

test("a cluster that is well gives nothing to look at", () => {
  expect(said(STATUS, members(3))).toEqual([]);
  expect(outlookOf(members(3))).toBe("one more may fail");
  expect(outlookOf(members(5))).toBe("2 more may fail");
});

test("a voter that is gone is told, and a standby is named to take its place", () => {
  expect(said(STATUS, members(3, [3]))).toEqual([
    ["warn", "Not one more voter may fail", "quorate member list"],
    ["warn", "Node 3 is not heard of", "curl https://10.0.0.3:7100/readyz"],
  ]);
  expect(said(STATUS, members(3, [3], [4]))[0]).toEqual([
    "warn",
    "Not one more voter may fail",
    "quorate member replace 3 4",
  ]);
  expect(outlookOf(members(3, [3]))).toBe("not one more may fail");
});

test("a majority that is gone comes first", () => {
  expect(said(STATUS, members(3, [2, 3]))[0]).toEqual([
    "bad",
    "A majority is not heard of",
    "quorate member list",
  ]);
  expect(outlookOf(members(3, [2, 3]))).toBe("a majority is missing");
  const leaderless: Status = { ...STATUS };
  delete (leaderless as { leaderId?: number }).leaderId;
  expect(said(leaderless)[0]?.[1]).toBe("Node 1 knows no leader");
});

test("what a node warns of has the step for it", () => {
  const warnings = [
    "800 of 1000 bytes of the quota are used (80 %); from 100 % on only what frees room is taken",
    "a bug was met: 1 commands faulted, 0 pieces of work are set aside; see /v1/cluster/faults",
    "something new",
  ];
  expect(said({ ...STATUS, warnings }).map(([, , command]) => command)).toEqual([
    "quorate list --count",
    "curl https://node1:7100/v1/cluster/faults",
    undefined,
  ]);
});

test("a disk that fills up, an older level, a member behind, a single node", () => {
  expect(said({ ...STATUS, diskFreeBytes: 99 })[0]?.[1]).toBe("The disk of node 1 has less than 10 % free");
  expect(said({ ...STATUS, levelKnown: 5 })[0]?.[1]).toBe("The cluster is at feature level 4 of 5");
  expect(said(STATUS, members(3, [], [], 1_000))[0]?.[1]).toBe("Node 1 is 1000 entries behind");
  expect(said(STATUS, members(1)).map(([, title]) => title)).toEqual([
    "A single node: if it fails, nothing answers",
  ]);
});
