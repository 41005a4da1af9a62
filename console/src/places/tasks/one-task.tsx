/** One task in full, at the side. Owns what can be done to it by its state. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { QuorateError } from "quorate";
import { asError } from "../../api/errors.js";
import { JsonText } from "../../api/json-text.js";
import { completeTask, readTask, type StoredTask } from "../../api/tasks.js";
import { visible } from "../../json/format.js";
import { notify } from "../../state/notices.js";
import { perform, useRequest } from "../../state/page.js";
import { isReadOnly } from "../../state/settings.js";
import { shownName } from "../../text/named.js";
import { bytes, duration, grouped, moment } from "../../text/words.js";
import { CopyButton } from "../../ui/copy-button.js";
import { Dialog } from "../../ui/dialog.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Empty, Shown } from "../../ui/states.js";
import { Time } from "../../ui/time.js";
import { cancelOne, requeueOne } from "./operate.js";
import { recurrence, when } from "./views.js";

const REFRESH_MS = 2_000;

/** What the dialog takes. */
export interface OneTaskProps {
  readonly queue: string;
  readonly id: string;
  readonly onClose: () => void;
  /** Something was done to it. */
  readonly onChanged: () => void;
}

/** The task. */
export function OneTask({ queue, id, onClose, onChanged }: OneTaskProps) {
  const source = useRequest(readTask(queue, id), `${queue}\n${id}`, { everyMs: REFRESH_MS });
  const [error, setError] = useState<QuorateError | undefined>(undefined);
  const attempt = async (act: () => Promise<unknown>) => {
    setError(undefined);
    try {
      await act();
    } catch (error) {
      setError(asError(error));
    }
    source.reload();
    onChanged();
  };
  return (
    <Dialog
      title={`Task ${shownName(id)}`}
      at="right"
      onClose={onClose}
      footer={source.data && <Actions queue={queue} task={source.data} attempt={attempt} />}
    >
      {error !== undefined && <Problem error={error} />}
      <Shown what="the task" source={source}>
        {(task) => task && <TaskFacts queue={queue} task={task} attempt={attempt} />}
      </Shown>
      {source.data === undefined && !source.isLoading && source.error === undefined && (
        <Empty title="There is no such task any more">
          <p>It was cancelled, or completed so long ago that its id is free again.</p>
        </Empty>
      )}
    </Dialog>
  );
}

interface PartProps {
  readonly queue: string;
  readonly task: StoredTask;
  readonly attempt: (act: () => Promise<unknown>) => Promise<void>;
}

function Actions({ queue, task, attempt }: PartProps) {
  const isOff = isReadOnly.value;
  return (
    <>
      {task.state !== "done" && task.state !== "gone" && (
        <button
          type="button"
          class="button danger-text"
          disabled={isOff}
          onClick={() => void attempt(() => cancelOne(queue, task))}
        >
          Cancel task
        </button>
      )}
      {task.state === "dead" && (
        <button
          type="button"
          class="button primary"
          disabled={isOff}
          onClick={() => void attempt(() => requeueOne(queue, task.id))}
        >
          Requeue
        </button>
      )}
    </>
  );
}

function TaskFacts({ queue, task, attempt }: PartProps) {
  const again = recurrence(task);
  const { backoff } = task;
  return (
    <>
      {task.lastError !== undefined && (
        <section class="block">
          <h3>{task.state === "dead" ? "Why it died" : "Why the last attempt failed"}</h3>
          <pre class="said bad">{task.lastError.split("\n").map(visible).join("\n")}</pre>
        </section>
      )}
      <dl class="list">
        <Fact name="State">
          <StateBadge state={task.state} /> {when(task, Date.now())}
        </Fact>
        <Fact name="Queue">
          <KeyName name={queue} />
        </Fact>
        {task.worker !== undefined && (
          <Fact name="Claimed by">
            <KeyName name={task.worker} />
          </Fact>
        )}
        {task.session !== undefined && <Fact name="Claim ends with session">{task.session}</Fact>}
        <Fact name="Attempts">
          {task.attempts} of {task.maxAttempts}
        </Fact>
        {task.executeAt !== undefined && (
          <Fact name="Due">
            <time dateTime={task.executeAt} title={task.executeAt}>
              {moment(task.executeAt)}
            </time>
          </Fact>
        )}
        {again !== undefined && <Fact name="Comes again">{again}</Fact>}
        {again !== undefined && <Fact name="Runs so far">{grouped(task.runs)}</Fact>}
        <Fact name="Scheduled">
          <Time at={task.createdAt} />
        </Fact>
        <Fact name="Pauses">
          {duration(backoff.initialMs ?? 0)}, each {backoff.factor ?? 1} times the one before, at most{" "}
          {duration(backoff.maxMs ?? 0)}
        </Fact>
      </dl>
      <Payload task={task} />
      {task.state === "claimed" && <Complete queue={queue} task={task} attempt={attempt} />}
    </>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The state of a task, coloured where it says that something is wrong or under way. */
export function StateBadge({ state }: { readonly state: StoredTask["state"] }) {
  const looks: Readonly<Record<string, string>> = { dead: "bad", claimed: "good" };
  return <span class={`badge ${looks[state] ?? "quiet"}`}>{state}</span>;
}

function Payload({ task: { payload } }: { readonly task: StoredTask }) {
  if (payload === undefined) {
    return <p class="hint">What it was about is not kept.</p>;
  }
  const isJson = payload instanceof JsonText;
  return (
    <section class="block">
      <div class="block-head">
        <h3>Payload</h3>
        {isJson && <CopyButton text={payload.text} what="what the task is about" />}
      </div>
      <pre class="said">{isJson ? payload.pretty : `${bytes(payload.length)} of bytes`}</pre>
    </section>
  );
}

function Complete({ queue, task, attempt }: PartProps) {
  const [token, setToken] = useState("");
  return (
    <form
      class="block"
      onSubmit={(event) => {
        event.preventDefault();
        void attempt(async () => {
          await perform(completeTask(queue, task.id, token));
          notify(`Completed: ${shownName(task.id)}`);
        });
      }}
    >
      <h3>Complete it for the worker</h3>
      <p class="hint">
        Who has the token of the claim can say that the task is done. The cluster tells it only to the worker,
        so look for it in the worker's log.
      </p>
      <div class="toolbar">
        <input
          class="mono grow"
          type="text"
          inputMode="numeric"
          aria-label="Token of the claim"
          placeholder="Token of the claim"
          autocomplete="off"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value.trim())}
        />
        <button type="submit" class="button" disabled={isReadOnly.value || !/^\d+$/.test(token)}>
          Complete
        </button>
      </div>
    </form>
  );
}
