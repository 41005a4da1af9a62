/** All queues and what they count. Owns which numbers are worth a colour. */

import type { QueueStats } from "quorate";
import { listQueues } from "../../api/tasks.js";
import { usePages } from "../../state/pages.js";
import { addressOf } from "../../state/route.js";
import { grouped } from "../../text/words.js";
import { Cell } from "../../ui/cell.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Empty, Loading } from "../../ui/states.js";
import { NameOf } from "./name-of.js";
import { ahead } from "./views.js";

const PAGE_QUEUES = 100;
const REFRESH_MS = 3_000;

/** The queues. */
export function Queues() {
  const queues = usePages("queues", {
    request: (cursor) => listQueues(PAGE_QUEUES, cursor),
    items: (page) => page.queues,
    everyMs: REFRESH_MS,
  });
  const { items, error, isThere, hasMore } = queues;
  return (
    <>
      {error !== undefined && <Problem error={error} onRetry={queues.reload} />}
      {error?.code === "permission_denied" && <NameOf />}
      {!isThere && error === undefined && <Loading what="the queues" />}
      {isThere && items.length === 0 && (
        <Empty title="There are no queues">
          <p>
            A queue is there once a task was scheduled in it. Press <kbd>n</kbd> to schedule one.
          </p>
        </Empty>
      )}
      {items.length > 0 && (
        <div class="table-box">
          <table class="table stacked">
            <thead>
              <tr>
                <th>Queue</th>
                <th class="number">Scheduled</th>
                <th class="number">Claimed</th>
                <th class="number">Dead</th>
                <th>Next</th>
                <th class="number">Completed so far</th>
                <th class="number">Failed attempts</th>
              </tr>
            </thead>
            <tbody>
              {items.map((stats) => (
                <QueueRow key={stats.queue} stats={stats} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {hasMore && (
        <button type="button" class="button" disabled={queues.isReading} onClick={queues.readOn}>
          Show more queues
        </button>
      )}
    </>
  );
}

function QueueRow({ stats }: { readonly stats: QueueStats }) {
  const { queue, dead, nextAt } = stats;
  return (
    <tr>
      <Cell label="Queue">
        <a class="row-name" href={addressOf("tasks", { queue })}>
          <KeyName name={queue} />
        </a>
      </Cell>
      <Cell label="Scheduled" isNumber>
        {grouped(stats.scheduled)}
      </Cell>
      <Cell label="Claimed" isNumber>
        {grouped(stats.claimed)}
      </Cell>
      <Cell label="Dead" isNumber>
        {dead === 0 ? (
          "0"
        ) : (
          <a class="badge bad" href={addressOf("tasks", { queue, state: "dead" })}>
            {grouped(dead)}
          </a>
        )}
      </Cell>
      <Cell label="Next">{nextAt === undefined ? "–" : ahead(nextAt, Date.now())}</Cell>
      <Cell label="Completed so far" isNumber>
        {grouped(stats.completedTotal)}
      </Cell>
      <Cell label="Failed attempts" isNumber>
        {grouped(stats.failedTotal)}
      </Cell>
    </tr>
  );
}
