/** What an operator does to tasks. Owns the questions that come before it, and the steps where it is many at once. */

import { cancelTask, requeueOldest, requeueTask, type StoredTask } from "../../api/tasks.js";
import { notify } from "../../state/notices.js";
import { perform } from "../../state/page.js";
import { shownName } from "../../text/named.js";
import { counted } from "../../text/words.js";
import { confirm } from "../../ui/confirm.js";
import { KeyName } from "../../ui/key-name.js";
import { each, type Step, type Worker } from "../../ui/work.js";
import { recurrence } from "./views.js";

/** So many ids are named in a question. */
const NAMED = 8;
/** So many dead tasks are put back at once: few enough for a progress that moves. */
const REQUEUE_STEP = 100;

/** Gives one dead task new attempts. */
export async function requeueOne(queue: string, id: string): Promise<void> {
  await perform(requeueTask(queue, id));
  notify(`Requeued: ${shownName(id)} is due now, with all its attempts`);
}

/** Takes one task away, once that is confirmed. Says whether it was. */
export async function cancelOne(queue: string, task: StoredTask): Promise<boolean> {
  const again = recurrence(task);
  const isSure = await confirm({
    title: "Cancel this task?",
    body: (
      <>
        <p>
          <KeyName name={task.id} /> is taken out of the queue <KeyName name={queue} />, and what it is about
          with it.
        </p>
        {task.state === "claimed" && (
          <p>
            {task.worker === undefined ? "A worker" : <KeyName name={task.worker} />} has it at the moment. It
            learns that it lost the task when it completes or extends it; what it has done stays done.
          </p>
        )}
        {again !== undefined && <p>It recurs ({again}), and would come no more.</p>}
      </>
    ),
    action: "Cancel the task",
    otherwise: "Keep it",
    isDangerous: true,
  });
  if (isSure) {
    await perform(cancelTask(queue, task.id));
    notify(`Cancelled: ${shownName(task.id)}`);
  }
  return isSure;
}

/** Gives these dead tasks new attempts, once that is confirmed. Says whether it was. */
export async function requeueMany(queue: string, ids: readonly string[], worker: Worker): Promise<boolean> {
  const what = `Requeue ${counted(ids.length, "task")}`;
  const isSure = await confirm({
    title: `${what}?`,
    body: (
      <>
        <Named ids={ids} />
        <p>
          They get all their attempts back and are due at once, so workers of <KeyName name={queue} /> take
          them up.
        </p>
      </>
    ),
    action: what,
  });
  if (isSure) {
    await worker.start(
      what,
      ids.length,
      each(ids, (id) => perform(requeueTask(queue, id))),
    );
  }
  return isSure;
}

/** Takes these tasks away, once that is confirmed. Says whether it was. */
export async function cancelMany(queue: string, ids: readonly string[], worker: Worker): Promise<boolean> {
  const what = `Cancel ${counted(ids.length, "task")}`;
  const isSure = await confirm({
    title: `${what}?`,
    body: (
      <>
        <Named ids={ids} />
        <p>
          They are taken out of the queue <KeyName name={queue} />, and what they are about with them. Those
          that recur come no more.
        </p>
      </>
    ),
    action: what,
    otherwise: "Keep them",
    isDangerous: true,
  });
  if (isSure) {
    await worker.start(
      what,
      ids.length,
      each(ids, (id) => perform(cancelTask(queue, id))),
    );
  }
  return isSure;
}

/** Gives all dead tasks new attempts, those that died first before the others, once that is confirmed. */
export async function requeueAll(queue: string, dead: number, worker: Worker): Promise<void> {
  const what = `Requeue all ${counted(dead, "dead task")}`;
  const isSure = await confirm({
    title: `${what}?`,
    body: (
      <p>
        All dead tasks of <KeyName name={queue} /> get their attempts back and are due at once, those that
        died first before the others, {REQUEUE_STEP} at a time.
      </p>
    ),
    action: what,
  });
  if (isSure) {
    await worker.start(what, dead, oldestFirst(queue, dead));
  }
}

async function* oldestFirst(queue: string, dead: number): AsyncGenerator<Step> {
  let isMore = true;
  // What dies again meanwhile is not put back a second time.
  for (let left = dead; left > 0 && isMore; left -= REQUEUE_STEP) {
    const { count, more } = await perform(requeueOldest(queue, Math.min(REQUEUE_STEP, left)));
    isMore = more;
    yield { done: count };
  }
}

function Named({ ids }: { readonly ids: readonly string[] }) {
  return (
    <ul>
      {ids.slice(0, NAMED).map((id) => (
        <li key={id}>
          <KeyName name={id} />
        </li>
      ))}
      {ids.length > NAMED && <li>and {counted(ids.length - NAMED, "other")}</li>}
    </ul>
  );
}
