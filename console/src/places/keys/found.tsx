/** The entries of which something holds, page by page as they are scrolled to. Owns the words for how far that has come. */

import type { Condition } from "../../api/keys.js";
import { useFound } from "../../state/found.js";
import { addressOf, go } from "../../state/route.js";
import { counted, grouped } from "../../text/words.js";
import { EntryRow } from "../../ui/entry-row.js";
import { Problem } from "../../ui/problem.js";
import { Rows } from "../../ui/rows.js";
import { Empty } from "../../ui/states.js";

const PAGE_ENTRIES = 200;

/** What was found. */
export function Found({ prefix, where }: { readonly prefix: string; readonly where: readonly Condition[] }) {
  const found = useFound({ prefix, where, limit: PAGE_ENTRIES });
  const { entries, error, isReading, isPaused, cursor } = found;
  return (
    <>
      <p class="hint keys-count" aria-live="polite">
        {counted(entries.length, "entry", "entries")} found{cursor === undefined ? "" : " so far"},{" "}
        {grouped(found.examined)} looked at,{" "}
        {found.indexUsed.length === 0 ? "no index used" : `index used: ${found.indexUsed.join(", ")}`}
        {isReading && (
          <button type="button" class="button quiet small" onClick={found.stop}>
            Stop
          </button>
        )}
        {isPaused && (
          <button type="button" class="button quiet small" onClick={found.readOn}>
            Load more
          </button>
        )}
      </p>
      {error !== undefined && <Problem error={error} onRetry={found.readOn} />}
      {entries.length > 0 && (
        <Rows
          label="Entries found"
          count={entries.length}
          render={(at) => <EntryRow entry={entries[at]} />}
          onOpen={(at) => void go(addressOf("entry", { key: entries[at]?.key ?? "" }))}
          onSeen={(_, last) => {
            if (last >= entries.length - 1 && isPaused && !found.isStopped) {
              found.readOn();
            }
          }}
        />
      )}
      {entries.length === 0 && cursor === undefined && (
        <Empty title="Nothing matches">
          <p>All {grouped(found.examined)} entries with this prefix were looked at.</p>
        </Empty>
      )}
    </>
  );
}
