/** Who changed a key, who tried to, and when. Owns which of the decisions are shown. */

import { useRef, useState } from "preact/hooks";
import { type AuditLine, keyOfShown } from "quorate";
import { useShortcuts } from "../../keyboard/keys.js";
import { addressOf, route, setQuery } from "../../state/route.js";
import { isChange, useTrail } from "../../state/trail.js";
import { nameIn, shownName } from "../../text/named.js";
import { counted, grouped } from "../../text/words.js";
import { Cell } from "../../ui/cell.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Empty, Loading } from "../../ui/states.js";
import { Time } from "../../ui/time.js";

const SHOWN_STEP = 100;
const SHOWN = [
  { id: "all", title: "All" },
  { id: "changes", title: "Changes" },
  { id: "refused", title: "Without effect" },
] as const;

/** The view. */
export function AuditView() {
  const key = nameIn(route.value.query, "key") ?? "";
  const [typed, setTyped] = useState(shownName(key));
  const field = useRef<HTMLInputElement>(null);
  useShortcuts([{ keys: "/", what: "Another key", group: "Access", run: () => field.current?.select() }]);
  return (
    <>
      <form
        class="toolbar"
        onSubmit={(event) => {
          event.preventDefault();
          setQuery({ view: "audit", key: keyOfShown(typed) }, "push");
        }}
      >
        <input
          ref={field}
          class="mono grow"
          type="text"
          aria-label="Key"
          placeholder="Key, in full: orders/o1"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <button type="submit" class="button primary" disabled={typed === ""}>
          Show
        </button>
      </form>
      {key === "" ? (
        <Empty title="Name a key">
          <p>Then you see who changed it, who tried to, when, and under which request id.</p>
        </Empty>
      ) : (
        <Lines key={key} name={key} />
      )}
      <p class="hint">
        The cluster keeps this with its history, and refusals for 15 minutes. Who was refused for want of a
        permission stands in the file that a node writes with <code>--audit-log</code>, and not here.
      </p>
    </>
  );
}

function Lines({ name }: { readonly name: string }) {
  const trail = useTrail(name);
  const [which, setWhich] = useState<(typeof SHOWN)[number]["id"]>("all");
  const [most, setMost] = useState(SHOWN_STEP);
  useShortcuts([{ keys: "r", what: "Read again", group: "Access", run: trail.reload }]);
  const newest = trail.lines
    .filter((line) => which === "all" || isChange(line) === (which === "changes"))
    .reverse();
  const changes = trail.lines.filter(isChange).length;
  if (trail.isReading && trail.lines.length === 0) {
    return <Loading what="the trail" />;
  }
  return (
    <>
      {trail.error !== undefined && <Problem error={trail.error} onRetry={trail.reload} />}
      {trail.lines.length === 0 && trail.error === undefined && (
        <Empty title="Nobody changed this key, or tried to">
          <p>Not since revision {trail.oldestRevision ?? "0"}, before which history was compacted.</p>
        </Empty>
      )}
      {trail.lines.length > 0 && (
        <>
          <div class="toolbar">
            <fieldset class="segments">
              <legend class="unseen">Which decisions</legend>
              {SHOWN.map(({ id, title }) => (
                <label key={id} class={id === which ? "segment active" : "segment"}>
                  <input type="radio" name="which" checked={id === which} onChange={() => setWhich(id)} />
                  {title}
                </label>
              ))}
            </fieldset>
            <span class="hint" aria-live="polite">
              {counted(changes, "change")},{" "}
              {counted(trail.lines.length - changes, "without effect", "without effect")}
            </span>
            {trail.isReading && (
              <button type="button" class="button small" onClick={trail.stop}>
                Reading more; stop
              </button>
            )}
            <a class="push" href={addressOf("history", { key: name })}>
              History of <KeyName name={name} />
            </a>
          </div>
          <div class="table-box">
            <table class="table compact stacked">
              <thead>
                <tr>
                  <th>When</th>
                  <th>Who</th>
                  <th>What</th>
                  <th>Outcome</th>
                  <th class="number">Revision</th>
                  <th>Request id</th>
                </tr>
              </thead>
              <tbody>
                {newest.slice(0, most).map((line) => (
                  <LineRow key={`${line.index} ${line.requestId}`} line={line} />
                ))}
              </tbody>
            </table>
          </div>
          {newest.length > most && (
            <button type="button" class="button start" onClick={() => setMost(most + SHOWN_STEP)}>
              Show older ({counted(newest.length - most, "more line")})
            </button>
          )}
        </>
      )}
    </>
  );
}

const LOOKS: Readonly<Record<string, string>> = { changed: "good", removed: "bad" };

function LineRow({ line }: { readonly line: AuditLine }) {
  const { time, principal, op, effect, refusal, revision, requestId } = line;
  return (
    <tr>
      <Cell label="When">
        <Time at={time} />
      </Cell>
      <Cell label="Who">{principal === undefined ? "–" : <KeyName name={principal} />}</Cell>
      <Cell label="What">{op}</Cell>
      <Cell label="Outcome">
        <span class={`badge ${LOOKS[effect] ?? ""}`}>{refusal ?? effect}</span>
      </Cell>
      <Cell label="Revision" isNumber>
        {grouped(revision)}
      </Cell>
      <Cell label="Request id">
        <code>{requestId ?? "–"}</code>
      </Cell>
    </tr>
  );
}
