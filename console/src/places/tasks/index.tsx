/**
 * Timed tasks: the queues, the tasks of one by what they wait for, one in full, and what an operator does to them.
 *
 * Owns what stands in the address: the queue, the view, the task that is shown in full.
 */

import { useState } from "preact/hooks";
import { useShortcuts } from "../../keyboard/keys.js";
import { addressOf, go, route } from "../../state/route.js";
import { isReadOnly } from "../../state/settings.js";
import { shownName } from "../../text/named.js";
import { Icon } from "../../ui/icon.js";
import { KeyName } from "../../ui/key-name.js";
import { Page } from "../../ui/page.js";
import { OneQueue } from "./one-queue.js";
import { Queues } from "./queues.js";
import { Schedule } from "./schedule.js";

/** The place. */
export default function TasksPlace() {
  const queue = route.value.query.get("queue") ?? "";
  const [isScheduling, setScheduling] = useState(false);
  const [turn, setTurn] = useState(0);
  useShortcuts([
    { keys: "n", what: "Schedule a task", group: "Tasks", run: () => setScheduling(!isReadOnly.peek()) },
    { keys: "u", what: "Up: all queues", group: "Tasks", run: () => void go(addressOf("tasks")) },
    { keys: "r", what: "Read again", group: "Tasks", run: () => setTurn(turn + 1) },
  ]);
  return (
    <Page
      title={queue === "" ? "Tasks" : `Tasks of ${shownName(queue)}`}
      heading={queue === "" ? "Tasks" : <QueueHeading queue={queue} />}
      actions={
        <button type="button" class="button" disabled={isReadOnly.value} onClick={() => setScheduling(true)}>
          <Icon name="plus" />
          <span>Schedule a task</span>
        </button>
      }
    >
      {queue === "" ? <Queues key={turn} /> : <OneQueue key={`${turn}\n${queue}`} queue={queue} />}
      {isScheduling && (
        <Schedule
          queue={queue}
          onClose={() => setScheduling(false)}
          onDone={() => {
            setScheduling(false);
            setTurn(turn + 1);
          }}
        />
      )}
    </Page>
  );
}

function QueueHeading({ queue }: { readonly queue: string }) {
  return (
    <span class="key-heading">
      <a href={addressOf("tasks")}>Tasks</a> <KeyName name={queue} />
    </span>
  );
}
