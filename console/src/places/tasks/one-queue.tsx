/** One queue: what it counts, its tasks in one view, and what is done to those that are chosen. Owns which are chosen. */

import { useEffect, useState } from "preact/hooks";
import type { QueueStats } from "quorate";
import { listTasks, readQueue, type StoredTask } from "../../api/tasks.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { useRequest } from "../../state/page.js";
import { type PagesSource, usePages } from "../../state/pages.js";
import { addressOf, route, setQuery } from "../../state/route.js";
import { isReadOnly } from "../../state/settings.js";
import { counted, grouped } from "../../text/words.js";
import { Problem } from "../../ui/problem.js";
import { Empty, Loading } from "../../ui/states.js";
import { Progress, useWork, type Worker } from "../../ui/work.js";
import { OneTask } from "./one-task.js";
import { cancelMany, requeueAll, requeueMany } from "./operate.js";
import { TaskTable } from "./task-table.js";
import { ahead, isPast, isShown, VIEWS, type View, viewOf } from "./views.js";

const PAGE_TASKS = 200;
const REFRESH_MS = 2_000;

/** The queue. */
export function OneQueue({ queue }: { readonly queue: string }) {
  const stats = useRequest(readQueue(queue), queue, { everyMs: REFRESH_MS });
  const { query } = route.value;
  const wanted = query.get("state");
  // Which view is shown first is decided by the first answer, and stays.
  const [first, setFirst] = useState<QueueStats | undefined>(undefined);
  useEffect(() => setFirst((before) => before ?? stats.data), [stats.data]);
  if (stats.data === undefined || (wanted === null && first === undefined)) {
    return stats.error === undefined ? (
      <Loading what="the queue" />
    ) : (
      <Problem error={stats.error} onRetry={stats.reload} />
    );
  }
  const view = viewOf(wanted, first);
  return (
    <>
      {stats.error !== undefined && <Problem error={stats.error} onRetry={stats.reload} />}
      <Totals stats={stats.data} />
      <Views queue={queue} stats={stats.data} current={view} />
      <Tasks key={view.id} queue={queue} view={view} stats={stats.data} onChanged={stats.reload} />
    </>
  );
}

function Totals({ stats }: { readonly stats: QueueStats }) {
  const facts: readonly (readonly [string, string])[] = [
    ["Scheduled", grouped(stats.scheduled)],
    ["Next", stats.nextAt === undefined ? "–" : ahead(stats.nextAt, Date.now())],
    ["Completed so far", grouped(stats.completedTotal)],
    ["Failed attempts", grouped(stats.failedTotal)],
    ["Died so far", grouped(stats.diedTotal)],
    ["Cancelled so far", grouped(stats.cancelledTotal)],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface ViewsProps {
  readonly queue: string;
  readonly stats: QueueStats;
  readonly current: View;
}

function Views({ queue, stats, current }: ViewsProps) {
  const shown = VIEWS.filter(({ id }) => id !== "unplanned" || stats.unplanned > 0 || current.id === id);
  const step = (by: number) => {
    // The key may come again before this was drawn anew.
    const id = route.peek().query.get("state") ?? current.id;
    const at = shown.findIndex((view) => view.id === id);
    const next = shown[(at + by + shown.length) % shown.length];
    setQuery({ queue, state: next?.id });
  };
  useShortcuts([
    { keys: "[", what: "View before", group: "Tasks", run: () => step(-1) },
    { keys: "]", what: "Next view", group: "Tasks", run: () => step(1) },
  ]);
  return (
    <nav class="segments views" aria-label="Tasks by what they wait for">
      {shown.map((view) => (
        <a
          key={view.id}
          class="segment"
          href={addressOf("tasks", { queue, state: view.id })}
          aria-current={view === current ? "page" : undefined}
        >
          {view.title}
          {view.count !== undefined && view.count(stats) > 0 && (
            <span class={view.id === "dead" ? "segment-count bad" : "segment-count"}>
              {grouped(view.count(stats))}
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}

interface TasksProps {
  readonly queue: string;
  readonly view: View;
  readonly stats: QueueStats;
  readonly onChanged: () => void;
}

function Tasks({ queue, view, stats, onChanged }: TasksProps) {
  const pages = usePages(`${queue}\n${view.id}`, {
    request: (cursor) => listTasks({ queue, state: view.state, limit: PAGE_TASKS, cursor }),
    items: (page) => page.tasks,
    everyMs: REFRESH_MS,
  });
  const worker = useWork();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const now = Date.now();
  const tasks = pages.items.filter((task) => isShown(view, task, now));
  const ids = tasks.map(({ id }) => id).filter((id) => chosen.has(id));
  const isMore = pages.hasMore && !isPast(view, pages.items, now);
  const id = route.value.query.get("id");
  const changed = () => {
    pages.reload();
    onChanged();
  };
  const many = async (act: typeof cancelMany) => {
    if (await act(queue, ids, worker)) {
      setChosen(new Set());
      changed();
    }
  };
  const goOn = tasks.length === 0 && isMore && !pages.isReading && pages.error === undefined;
  useEffect(() => {
    // A page may have none that this view shows.
    if (goOn) {
      pages.readOn();
    }
  }, [goOn]);
  return (
    <>
      <Progress worker={worker} />
      {pages.error !== undefined && <Problem error={pages.error} onRetry={pages.reload} />}
      {tasks.length > 0 && (
        <Chosen
          view={view}
          tasks={tasks}
          ids={ids}
          worker={worker}
          onChoose={setChosen}
          onRequeue={() => void many(requeueMany)}
          onCancel={() => void many(cancelMany)}
          onRequeueAll={() => void requeueAll(queue, stats.dead, worker).then(changed)}
          dead={stats.dead}
        />
      )}
      <Listed queue={queue} view={view} pages={pages} tasks={tasks} chosen={chosen} onChoose={setChosen} />
      {isMore && tasks.length > 0 && (
        <button type="button" class="button start" disabled={pages.isReading} onClick={pages.readOn}>
          Show more tasks
        </button>
      )}
      {id !== null && (
        <OneTask
          key={id}
          queue={queue}
          id={id}
          onClose={() => setQuery({ queue, state: view.id })}
          onChanged={changed}
        />
      )}
    </>
  );
}

interface ListedProps {
  readonly queue: string;
  readonly view: View;
  readonly pages: PagesSource<StoredTask>;
  readonly tasks: readonly StoredTask[];
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (chosen: ReadonlySet<string>) => void;
}

function Listed({ queue, view, pages, tasks, chosen, onChoose }: ListedProps) {
  if (tasks.length > 0) {
    return <TaskTable queue={queue} view={view} tasks={tasks} chosen={chosen} onChoose={onChoose} />;
  }
  if (pages.error !== undefined) {
    return null;
  }
  return pages.isThere && !pages.hasMore ? <Empty title={view.none} /> : <Loading what="the tasks" />;
}

interface ChosenProps {
  readonly view: View;
  readonly tasks: readonly StoredTask[];
  readonly ids: readonly string[];
  readonly worker: Worker;
  readonly dead: number;
  readonly onChoose: (chosen: ReadonlySet<string>) => void;
  readonly onRequeue: () => void;
  readonly onCancel: () => void;
  readonly onRequeueAll: () => void;
}

/** What can be done to the tasks that are chosen. */
function Chosen(props: ChosenProps) {
  const { view, tasks, ids, worker, dead, onChoose, onRequeue, onCancel, onRequeueAll } = props;
  const isAll = ids.length === tasks.length;
  const isOff = isReadOnly.value || worker.isBusy;
  const toggleAll = () => onChoose(isAll ? new Set() : new Set(tasks.map(({ id }) => id)));
  useShortcuts([{ keys: "a", what: "Choose all that are shown, or none", group: "Tasks", run: toggleAll }]);
  return (
    <div class="toolbar chosen">
      <label class="check">
        <input
          type="checkbox"
          checked={isAll}
          ref={(box) => {
            if (box !== null) {
              box.indeterminate = ids.length > 0 && !isAll;
            }
          }}
          onChange={toggleAll}
        />
        {ids.length === 0
          ? `Choose all ${counted(tasks.length, "task")} shown`
          : `${grouped(ids.length)} chosen`}
      </label>
      <span class="push" />
      {view.id === "dead" && ids.length === 0 && (
        <button type="button" class="button small" disabled={isOff} onClick={onRequeueAll}>
          Requeue all {grouped(dead)}
        </button>
      )}
      {view.id === "dead" && ids.length > 0 && (
        <button type="button" class="button small" disabled={isOff} onClick={onRequeue}>
          Requeue {grouped(ids.length)}
        </button>
      )}
      {view.id !== "done" && ids.length > 0 && (
        <button type="button" class="button small danger-text" disabled={isOff} onClick={onCancel}>
          Cancel {grouped(ids.length)}
        </button>
      )}
    </div>
  );
}
