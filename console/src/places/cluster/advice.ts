/**
 * What somebody should look at, with the next safe step for each.
 *
 * Owns the judgement. Pure: takes what the node and the leader said.
 */

import type { Members, Status } from "quorate";

/** Something to look at. */
export interface Advice {
  readonly tone: "bad" | "warn" | "note";
  readonly title: string;
  /** The next safe step. */
  readonly step: string;
  /** The command for it, where there is one. */
  readonly command?: string;
}

/** A node that is so many entries behind is worth a word. */
const LAG_NOTED = 1_000;
/** From this share of the quota on somebody should make room; nodes warn from 80 % on. */
const DISK_LOW = 0.1;

/** The steps for what a node warns of, by words of the warning. */
const STEPS: readonly { readonly words: RegExp; readonly step: string; readonly command?: string }[] = [
  {
    words: /of the quota are used/,
    step: "Delete what is not needed, or start the nodes with a greater --quota-bytes.",
    command: "quorate list --count",
  },
  {
    words: /data disk has .* free/,
    step: "Make room on the disk of that node. Removals still work meanwhile.",
  },
  {
    words: /a bug was met/,
    step: "Read what faulted and report it. Then forget the commands, or retry the work after an upgrade.",
    command: "curl ORIGIN/v1/cluster/faults",
  },
  {
    words: /backup/,
    step: "Make a backup now, and look why the last one failed.",
    command: "quorate backup FILE",
  },
  {
    words: /certificate/,
    step: "Put new certificates where the old ones are. The node takes them without a restart.",
    command: "quorate-node pki --help",
  },
];

/** All there is to look at, the worst first. `origin` is where the node is reached. */
export function adviceOf(status: Status, members: Members | undefined, origin: string): Advice[] {
  const { protocol } = new URL(origin);
  const all = [
    ...ofNode(status, origin),
    ...(members === undefined ? [] : [...ofTolerance(members), ...ofMembers(members, protocol)]),
  ];
  const order = ["bad", "warn", "note"];
  return all.sort((one, other) => order.indexOf(one.tone) - order.indexOf(other.tone));
}

function ofNode(status: Status, origin: string): Advice[] {
  const warnings = (status.warnings ?? []).map((title): Advice => {
    const known = STEPS.find(({ words }) => words.test(title));
    return {
      tone: "warn",
      title: `Node ${status.nodeId}: ${title}`,
      step: known?.step ?? "The log of the node has more about it.",
      ...(known?.command !== undefined && { command: known.command.replace("ORIGIN", origin) }),
    };
  });
  if (status.leaderId === undefined) {
    warnings.push({
      tone: "bad",
      title: `Node ${status.nodeId} knows no leader`,
      step: "Wait for the election. If it lasts, look whether a majority of the voters runs and reaches one another.",
      command: "quorate status",
    });
  }
  if ((status.level ?? 0) < (status.levelKnown ?? 0)) {
    warnings.push({
      tone: "note",
      title: `The cluster is at feature level ${status.level} of ${status.levelKnown}`,
      step: "It rises by itself once all members run a version that knows the newer level: go on with the upgrade.",
      command: "quorate status",
    });
  }
  return [...warnings, ...ofDisk(status)];
}

function ofDisk(status: Status): Advice[] {
  const { diskFreeBytes: free, diskSizeBytes: size, warnings } = status;
  const isSaid = (warnings ?? []).some((warning) => /data disk/.test(warning));
  if (isSaid || free === undefined || size === undefined || free >= size * DISK_LOW) {
    return [];
  }
  return [
    {
      tone: "warn",
      title: `The disk of node ${status.nodeId} has less than ${DISK_LOW * 100} % free`,
      step: "Make room on it before writes are refused.",
    },
  ];
}

function ofTolerance({ members, needed }: Members): Advice[] {
  const voters = members.filter((member) => member.role === "voter");
  const spare = voters.filter((member) => member.healthy).length - needed;
  const standby = members.find((member) => member.role === "learner" && member.healthy);
  if (voters.length === 1) {
    return [
      {
        tone: "note",
        title: "A single node: if it fails, nothing answers",
        step: "Start two more nodes with this one in their --join. They take part by themselves.",
      },
    ];
  }
  if (spare > 0) {
    return [];
  }
  return [
    {
      tone: spare < 0 ? "bad" : "warn",
      title: spare < 0 ? "A majority is not heard of" : "Not one more voter may fail",
      step:
        standby === undefined
          ? "Start the voter that is missing, or a standby on another machine. Remove nothing."
          : `Node ${standby.id} stands by: let it take the place of the voter that is gone.`,
      command:
        standby === undefined
          ? "quorate member list"
          : `quorate member replace ${missing(voters)} ${standby.id}`,
    },
  ];
}

function missing(voters: Members["members"]): string {
  return String(voters.find((voter) => !voter.healthy)?.id ?? "ID");
}

function ofMembers({ members }: Members, protocol: string): Advice[] {
  return members.flatMap((member): Advice[] => {
    if (!member.healthy) {
      return [
        {
          tone: "warn",
          title: `Node ${member.id} is not heard of`,
          step: "Look whether it runs and reaches the others. It catches up by itself once it is back.",
          command: `curl ${protocol}//${member.clientAddr}/readyz`,
        },
      ];
    }
    if ((member.lag ?? 0) >= LAG_NOTED) {
      return [
        {
          tone: "note",
          title: `Node ${member.id} is ${member.lag} entries behind`,
          step: "It catches up by itself. If the number grows, look at its disk and its connection.",
          command: "quorate top",
        },
      ];
    }
    return [];
  });
}

/** How many voters more may fail, in words. */
export function outlookOf(members: Members): string {
  const healthy = members.members.filter((member) => member.role === "voter" && member.healthy).length;
  const spare = healthy - members.needed;
  if (spare < 0) {
    return "a majority is missing";
  }
  return spare === 0 ? "not one more may fail" : spare === 1 ? "one more may fail" : `${spare} more may fail`;
}
