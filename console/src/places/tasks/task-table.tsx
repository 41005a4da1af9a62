/** The tasks of a view as a table. Owns its columns, and the keys that go through its rows. */

import { useRef } from "preact/hooks";
import { JsonText } from "../../api/json-text.js";
import type { StoredTask } from "../../api/tasks.js";
import { visible } from "../../json/format.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { addressOf } from "../../state/route.js";
import { shownName } from "../../text/named.js";
import { bytes } from "../../text/words.js";
import { Cell } from "../../ui/cell.js";
import { KeyName } from "../../ui/key-name.js";
import { recurrence, type View, when } from "./views.js";

const PREVIEW_LENGTH = 48;

/** What the table takes. */
export interface TaskTableProps {
  readonly queue: string;
  readonly view: View;
  readonly tasks: readonly StoredTask[];
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (chosen: ReadonlySet<string>) => void;
}

/** The table. */
export function TaskTable({ queue, view, tasks, chosen, onChoose }: TaskTableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const isClaimed = view.id === "claimed";
  const hasErrors = tasks.some(({ lastError }) => lastError !== undefined);
  const choose = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) {
      next.add(id);
    }
    onChoose(next);
  };
  const links = () => [...(body.current?.querySelectorAll<HTMLAnchorElement>("a.row-name") ?? [])];
  const current = () => links().findIndex((link) => link.closest("tr")?.contains(document.activeElement));
  const move = (by: number) => {
    const all = links();
    all[Math.max(0, Math.min(all.length - 1, current() + by))]?.focus();
  };
  useShortcuts([
    { keys: "j", what: "Next row", group: "Lists", run: () => move(1) },
    { keys: "k", what: "Row before", group: "Lists", run: () => move(-1) },
    {
      keys: "x",
      what: "Choose the row",
      group: "Tasks",
      run: () => {
        const task = tasks[current()];
        if (task !== undefined) {
          choose(task.id);
        }
      },
    },
  ]);
  return (
    <div class="table-box">
      <table class="table compact stacked tasks">
        <thead>
          <tr>
            <th>
              <span class="unseen">Chosen</span>
            </th>
            <th>Task</th>
            <th>When</th>
            {isClaimed && <th>Claimed by</th>}
            <th class="number">Attempts</th>
            {hasErrors && <th>Last error</th>}
            <th>About</th>
          </tr>
        </thead>
        <tbody ref={body}>
          {tasks.map((task) => (
            <tr key={task.id} class={chosen.has(task.id) ? "current" : undefined}>
              <Cell label="Chosen">
                <input
                  type="checkbox"
                  aria-label={`Choose ${shownName(task.id)}`}
                  checked={chosen.has(task.id)}
                  onChange={() => choose(task.id)}
                />
              </Cell>
              <Cell label="Task">
                <a class="row-name" href={addressOf("tasks", { queue, state: view.id, id: task.id })}>
                  <KeyName name={task.id} />
                </a>
                {recurrence(task) !== undefined && <span class="badge quiet after">recurs</span>}
              </Cell>
              <Cell label="When">{when(task, Date.now())}</Cell>
              {isClaimed && (
                <Cell label="Claimed by">
                  {task.worker === undefined ? "–" : <KeyName name={task.worker} />}
                </Cell>
              )}
              <Cell label="Attempts" isNumber>
                {task.attempts} of {task.maxAttempts}
              </Cell>
              {hasErrors && (
                <Cell label="Last error" class="wrap">
                  {task.lastError === undefined ? "–" : <bdi>{visible(firstLine(task.lastError))}</bdi>}
                </Cell>
              )}
              <Cell label="About" class="about">
                <bdi>
                  <code>{aboutOf(task)}</code>
                </bdi>
              </Cell>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? "";
}

function aboutOf({ payload }: StoredTask): string {
  if (payload === undefined) {
    return "–";
  }
  return payload instanceof JsonText
    ? visible(payload.preview(PREVIEW_LENGTH))
    : `${bytes(payload.length)} of bytes`;
}
