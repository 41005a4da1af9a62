/** The tasks of a queue by what they wait for. Owns which tasks a view shows, and the words for when something happens to one. */

import type { QueueStats, TaskState } from "quorate";
import type { StoredTask } from "../../api/tasks.js";
import { ago, duration } from "../../text/words.js";

/** A view: the state that is asked for, and which of its tasks are shown. */
export interface View {
  readonly id: "due" | "waiting" | "claimed" | "dead" | "unplanned" | "done";
  readonly title: string;
  readonly state: TaskState;
  /** How many there are, where the queue counts that. */
  readonly count?: (stats: QueueStats) => number;
  /** What it means that there are none. */
  readonly none: string;
}

/** All views, in the order in which they are offered. */
export const VIEWS: readonly View[] = [
  { id: "due", title: "Due", state: "scheduled", none: "No task waits for a worker." },
  { id: "waiting", title: "Waiting", state: "scheduled", none: "No task is planned for later." },
  {
    id: "claimed",
    title: "Claimed",
    state: "claimed",
    count: ({ claimed }) => claimed,
    none: "No worker has a task of this queue.",
  },
  {
    id: "dead",
    title: "Dead",
    state: "dead",
    count: ({ dead }) => dead,
    none: "No task has used up its attempts.",
  },
  {
    id: "unplanned",
    title: "Unplanned",
    state: "unplanned",
    count: ({ unplanned }) => unplanned,
    none: "Each recurring task has its next time.",
  },
  {
    id: "done",
    title: "Done",
    state: "done",
    count: ({ done }) => done,
    none: "No completed task is kept; each is for a while, so that its id is not used again.",
  },
];

/** The view of this name, or the one that is worth a look first. */
export function viewOf(id: string | null, stats: QueueStats | undefined): View {
  const wanted = id ?? ((stats?.dead ?? 0) > 0 ? "dead" : "due");
  return VIEWS.find((view) => view.id === wanted) ?? (VIEWS[0] as View);
}

/** Whether the view shows this task of its state. */
export function isShown(view: View, task: StoredTask, now: number): boolean {
  switch (view.id) {
    case "due":
      return isDue(task, now);
    case "waiting":
      return !isDue(task, now);
    default:
      return true;
  }
}

function isDue({ executeAt }: StoredTask, now: number): boolean {
  return executeAt !== undefined && Date.parse(executeAt) <= now;
}

/** Whether no task further on is shown: they come in the order in which they are due. */
export function isPast(view: View, tasks: readonly StoredTask[], now: number): boolean {
  const last = tasks.at(-1);
  return view.id === "due" && last !== undefined && !isDue(last, now);
}

/** How long until this moment: `in 5 min`; `now` once it is there. */
export function ahead(time: string, now: number): string {
  const ms = Date.parse(time) - now;
  return ms <= 0 ? "now" : `in ${duration(ms)}`;
}

/** When what comes next happens to a task, or happened to it last. */
export function when(task: StoredTask, now: number): string {
  const { state, executeAt, diedAt, leaseMs, keptMs } = task;
  switch (state) {
    case "claimed":
      return leaseMs === undefined ? "claimed" : `for ${duration(leaseMs)} more`;
    case "dead":
      return diedAt === undefined ? "dead" : `died ${ago(diedAt, now)}`;
    case "done":
      return keptMs === undefined ? "done" : `id kept ${duration(keptMs)} more`;
    case "unplanned":
      return "its next time is being worked out";
    default:
      if (executeAt === undefined) {
        return "–";
      }
      return isDue(task, now)
        ? `due since ${duration(now - Date.parse(executeAt))}`
        : `due ${ahead(executeAt, now)}`;
  }
}

/** How a task comes again; `undefined` for one that comes once. */
export function recurrence({ cron, zone, everyMs }: StoredTask): string | undefined {
  if (cron !== undefined) {
    return `${cron} (${zone ?? "UTC"})`;
  }
  return everyMs === undefined ? undefined : `every ${duration(everyMs)}`;
}
