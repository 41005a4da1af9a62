/** The table of decisions, the newest first. Owns how many are shown, and the choice of two of them. */

import { useState } from "preact/hooks";
import type { AuditLine } from "quorate";
import { isChange } from "../../state/trail.js";
import { counted, grouped } from "../../text/words.js";
import { Cell } from "../../ui/cell.js";
import { KeyName } from "../../ui/key-name.js";
import { Time } from "../../ui/time.js";

/** So many are shown at first, and more at each asking. */
const SHOWN_STEP = 100;

/** What the table takes. */
export interface TrailTableProps {
  /** Oldest first. */
  readonly lines: readonly AuditLine[];
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly onCompare: (from: string | undefined, to: string | undefined) => void;
  readonly onRestore: (line: AuditLine) => void;
  readonly canRestore: boolean;
}

/** The table. */
export function TrailTable({ lines, ...choices }: TrailTableProps) {
  const [shown, setShown] = useState(SHOWN_STEP);
  const newest = [...lines].reverse();
  const last = lines.findLast(isChange);
  return (
    <div class="trail">
      <div class="table-box">
        <table class="table compact stacked">
          <thead>
            <tr>
              <th>
                <abbr title="Compare from">From</abbr>
              </th>
              <th>
                <abbr title="Compare to">To</abbr>
              </th>
              <th class="number">Revision</th>
              <th>What</th>
              <th>When</th>
              <th>Who</th>
              <th>Request id</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {newest.slice(0, shown).map((line) => (
              <TrailRow
                key={`${line.index} ${line.requestId}`}
                line={line}
                isLast={line === last}
                {...choices}
              />
            ))}
          </tbody>
        </table>
      </div>
      {newest.length > shown && (
        <button type="button" class="button" onClick={() => setShown(shown + SHOWN_STEP)}>
          Show older ({counted(newest.length - shown, "more line")})
        </button>
      )}
    </div>
  );
}

interface TrailRowProps extends Omit<TrailTableProps, "lines"> {
  readonly line: AuditLine;
  readonly isLast: boolean;
}

function TrailRow({ line, isLast, from, to, onCompare, onRestore, canRestore }: TrailRowProps) {
  const { revision, effect } = line;
  if (!isChange(line)) {
    return (
      <tr class="refusal">
        <td />
        <td />
        <Cell label="Revision" isNumber>
          {grouped(revision)}
        </Cell>
        <Cell label="What">
          {line.op} <span class="badge">{line.refusal ?? effect}</span>
        </Cell>
        <Who line={line} />
        <td />
      </tr>
    );
  }
  return (
    <tr class={revision === to ? "current" : undefined}>
      <Cell label="From">
        <input
          type="radio"
          name="from"
          aria-label={`Compare from revision ${revision}`}
          checked={revision === from}
          onChange={() => onCompare(revision, to)}
        />
      </Cell>
      <Cell label="To">
        <input
          type="radio"
          name="to"
          aria-label={`Compare to revision ${revision}`}
          checked={revision === to}
          onChange={() => onCompare(from, revision)}
        />
      </Cell>
      <Cell label="Revision" isNumber>
        {grouped(revision)}
      </Cell>
      <Cell label="What">
        {line.op} {effect === "removed" && <span class="badge bad">deleted</span>}
        {isLast && <span class="badge good">now</span>}
      </Cell>
      <Who line={line} />
      {effect === "changed" && !isLast ? (
        <Cell label="" class="row-actions">
          <button
            type="button"
            class="button small"
            aria-label={`Restore revision ${revision}`}
            disabled={!canRestore}
            onClick={() => onRestore(line)}
          >
            Restore
          </button>
        </Cell>
      ) : (
        <td />
      )}
    </tr>
  );
}

function Who({ line }: { readonly line: AuditLine }) {
  return (
    <>
      <Cell label="When">
        <Time at={line.time} />
      </Cell>
      <Cell label="Who">{line.principal === undefined ? "–" : <KeyName name={line.principal} />}</Cell>
      <Cell label="Request id">
        <code>{line.requestId ?? "–"}</code>
      </Cell>
    </>
  );
}
