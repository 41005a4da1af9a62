/** Schedules a task. Owns the form; nothing is sent before it says something that can be scheduled. */

import { useState } from "preact/hooks";
import type { QuorateError } from "quorate";
import { asError } from "../../api/errors.js";
import { scheduleTask } from "../../api/tasks.js";
import { notify } from "../../state/notices.js";
import { perform } from "../../state/page.js";
import { addressOf, go } from "../../state/route.js";
import { shownName } from "../../text/named.js";
import { Dialog } from "../../ui/dialog.js";
import { Problem } from "../../ui/problem.js";
import { type Draft, EMPTY, TIMINGS, taskOf } from "./draft.js";

/** What the form takes. */
export interface ScheduleProps {
  /** The queue of the page; empty where there is none. */
  readonly queue: string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** The form. */
export function Schedule({ queue, onClose, onDone }: ScheduleProps) {
  const [draft, setDraft] = useState<Draft>({ ...EMPTY, queue: shownName(queue) });
  const [error, setError] = useState<QuorateError | undefined>(undefined);
  const [isTried, setTried] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const task = taskOf(draft);
  const set = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const submit = async () => {
    setTried(true);
    setError(undefined);
    if (typeof task === "string") {
      return;
    }
    setBusy(true);
    try {
      const { id, created } = await perform(scheduleTask(task));
      notify(
        created ? `Scheduled: ${shownName(id)}` : `Not scheduled: the id ${shownName(id)} is in use already`,
      );
      onDone();
      void go(
        addressOf("tasks", { queue: task.queue, state: task.timing.kind === "now" ? "due" : "waiting" }),
      );
    } catch (error) {
      setError(asError(error));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Schedule a task"
      onClose={onClose}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="schedule" class="button primary" disabled={isBusy}>
            Schedule
          </button>
        </>
      }
    >
      <form
        id="schedule"
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        {error !== undefined && <Problem error={error} />}
        <Line label="Queue" value={draft.queue} onValue={(queue) => set({ queue })} />
        <label class="field">
          <span>Payload (JSON)</span>
          <textarea
            class="mono"
            rows={4}
            spellcheck={false}
            dir="ltr"
            value={draft.payload}
            onInput={(event) => set({ payload: event.currentTarget.value })}
          />
        </label>
        <Timing draft={draft} set={set} />
        <div class="columns narrow">
          <Line label="Id (empty for one of the cluster's)" value={draft.id} onValue={(id) => set({ id })} />
          <Line
            label="Attempts (20)"
            value={draft.maxAttempts}
            onValue={(maxAttempts) => set({ maxAttempts })}
          />
        </div>
        <p class="hint">
          While an id is in use nothing more is scheduled under it, so the same can be asked twice.
        </p>
        {isTried && typeof task === "string" && (
          <p class="field-error" role="alert">
            {task}
          </p>
        )}
      </form>
    </Dialog>
  );
}

interface TimingProps {
  readonly draft: Draft;
  readonly set: (part: Partial<Draft>) => void;
}

function Timing({ draft, set }: TimingProps) {
  return (
    <>
      <label class="field">
        <span>Due</span>
        <select
          value={draft.timing}
          onChange={(event) => set({ timing: event.currentTarget.value as Draft["timing"] })}
        >
          {TIMINGS.map(({ id, title }) => (
            <option key={id} value={id}>
              {title}
            </option>
          ))}
        </select>
      </label>
      {(draft.timing === "delay" || draft.timing === "every") && (
        <Line
          label={draft.timing === "delay" ? "In (10m, 2h, 7d)" : "Every (10m, 2h, 7d)"}
          value={draft.span}
          onValue={(span) => set({ span })}
        />
      )}
      {draft.timing === "at" && (
        <Line
          label="At (RFC 3339, such as 2026-12-24T18:00:00Z)"
          value={draft.at}
          onValue={(at) => set({ at })}
        />
      )}
      {draft.timing === "cron" && (
        <div class="columns narrow">
          <Line
            label="Minute, hour, day, month, weekday"
            value={draft.cron}
            onValue={(cron) => set({ cron })}
          />
          <Line label="Time zone (UTC)" value={draft.zone} onValue={(zone) => set({ zone })} />
        </div>
      )}
    </>
  );
}

interface LineProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
}

function Line({ label, value, onValue }: LineProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        class="mono"
        type="text"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        value={value}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
    </label>
  );
}
