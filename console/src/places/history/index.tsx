/**
 * What an entry was: each change, who made it and when, the difference between any two versions, and an old version restored.
 *
 * Owns which two versions are compared; they stand in the address.
 */

import { useState } from "preact/hooks";
import type { AuditLine, QuorateError } from "quorate";
import { readEntry, type StoredEntry, writeEntry } from "../../api/entries.js";
import { asError } from "../../api/errors.js";
import { JsonText } from "../../api/json-text.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { notify } from "../../state/notices.js";
import { perform, useRequest } from "../../state/page.js";
import { addressOf, go, route, setQuery } from "../../state/route.js";
import { isReadOnly } from "../../state/settings.js";
import { isChange, useTrail } from "../../state/trail.js";
import { nameIn, shownName } from "../../text/named.js";
import { counted, grouped } from "../../text/words.js";
import { confirm } from "../../ui/confirm.js";
import { Difference } from "../../ui/difference.js";
import { KeyHeading, KeyTabs, NoKeyNamed } from "../../ui/key-heading.js";
import { KeyName } from "../../ui/key-name.js";
import { Page } from "../../ui/page.js";
import { Problem } from "../../ui/problem.js";
import { Empty, Loading } from "../../ui/states.js";
import { dump } from "../entry/bytes.js";
import { kept } from "../entry/draft.js";
import { TrailTable } from "./trail-table.js";

/** The place. */
export default function HistoryPlace() {
  const key = nameIn(route.value.query, "key") ?? "";
  return (
    <Page
      title={key === "" ? "History" : `History of ${shownName(key)}`}
      heading={key === "" ? "History" : <KeyHeading name={key} />}
      actions={key === "" ? undefined : <KeyTabs name={key} current="history" />}
    >
      {key === "" ? <NoKeyNamed /> : <OneHistory key={key} name={key} />}
    </Page>
  );
}

function OneHistory({ name }: { readonly name: string }) {
  const trail = useTrail(name);
  const [error, setError] = useState<QuorateError | undefined>(undefined);
  const { query } = route.value;
  const changes = trail.lines.filter(isChange);
  const to = query.get("to") ?? changes.at(-1)?.revision;
  const from = query.get("from") ?? before(changes, to);
  const compare = (from: string | undefined, to: string | undefined) => setQuery({ key: name, from, to });
  useShortcuts([
    { keys: "r", what: "Read again", group: "History", run: trail.reload },
    { keys: "e", what: "Entry", group: "History", run: () => void go(addressOf("entry", { key: name })) },
    { keys: "[", what: "One version back", group: "History", run: () => step(-1) },
    { keys: "]", what: "One version on", group: "History", run: () => step(1) },
  ]);
  const step = (by: number) => {
    const at = changes.findIndex((line) => line.revision === to) + by;
    const line = changes[at];
    if (line !== undefined) {
      compare(before(changes, line.revision), line.revision);
    }
  };
  const restore = async (line: AuditLine) => {
    setError(undefined);
    try {
      await restored(name, line.revision);
      trail.reload();
    } catch (error) {
      setError(asError(error));
    }
  };

  if (trail.error !== undefined && trail.lines.length === 0) {
    return <Problem error={trail.error} onRetry={trail.reload} />;
  }
  if (trail.isReading && trail.lines.length === 0) {
    return <Loading what="the history" />;
  }
  if (trail.lines.length === 0) {
    return (
      <Empty title="Nothing is known of the past of this key">
        <p>
          It was never written, or not since revision {trail.oldestRevision ?? "0"}, before which history was
          compacted.
        </p>
      </Empty>
    );
  }
  return (
    <>
      {error !== undefined && <Problem error={error} />}
      {trail.error !== undefined && <Problem error={trail.error} onRetry={trail.reload} />}
      <p class="hint keys-count" aria-live="polite">
        {counted(changes.length, "change")},{" "}
        {counted(
          trail.lines.length - changes.length,
          "refused or without effect",
          "refused or without effect",
        )}
        {trail.isReading && (
          <button type="button" class="button quiet small" onClick={trail.stop}>
            Reading more; stop
          </button>
        )}
        {trail.isStopped && "; not all was read"}
      </p>
      <div class="history">
        <TrailTable
          lines={trail.lines}
          from={from}
          to={to}
          onCompare={compare}
          onRestore={(line) => void restore(line)}
          canRestore={!isReadOnly.value}
        />
        {to !== undefined && <Compared name={name} from={from} to={to} />}
      </div>
    </>
  );
}

/** The change before this one. */
function before(changes: readonly AuditLine[], revision: string | undefined): string | undefined {
  const at = changes.findIndex((line) => line.revision === revision);
  return at > 0 ? changes[at - 1]?.revision : undefined;
}

interface ComparedProps {
  readonly name: string;
  readonly from: string | undefined;
  readonly to: string;
}

function Compared({ name, from, to }: ComparedProps) {
  const old = useRequest(from === undefined ? undefined : readEntry(name, from), from);
  const young = useRequest(readEntry(name, to), to);
  const error = old.error ?? young.error;
  const title =
    from === undefined
      ? `Revision ${grouped(to)}, the first that is known`
      : `From revision ${grouped(from)} to ${grouped(to)}`;
  return (
    <section class="block compared">
      <h2>{title}</h2>
      {error !== undefined ? (
        <Problem error={error} onRetry={error === old.error ? old.reload : young.reload} />
      ) : old.isLoading || young.isLoading ? (
        <Loading what="both versions" />
      ) : (
        <Difference label={title} before={textOf(old.data)} after={textOf(young.data)} />
      )}
    </section>
  );
}

/** The text of a version; empty where the entry was not there. */
function textOf(entry: StoredEntry | undefined): string {
  if (entry === undefined) {
    return "";
  }
  return entry.value instanceof JsonText ? entry.value.pretty : dump(entry.value);
}

/** Lets the entry be what it was, on the cas that it has now, once that was confirmed. */
async function restored(name: string, revision: string): Promise<void> {
  const then = await perform(readEntry(name, revision));
  const now = await perform(readEntry(name));
  if (then === undefined) {
    notify(`${shownName(name)} was not there at revision ${revision}. To delete it, use its own page.`);
    return;
  }
  const isSure = await confirm({
    title: "Restore this version?",
    body: (
      <>
        <p>
          <KeyName name={name} /> gets the value that it had at revision {grouped(revision)}, version{" "}
          {then.version}.
        </p>
        <p>
          {now === undefined
            ? "It was deleted, and is created again; if somebody else creates it before that, nothing is written."
            : `It takes the place of version ${now.version} (cas ${now.cas ?? "none"}), which stays in the history. If somebody changes it before that, nothing is written. Its session and the time it has left stay.`}
        </p>
      </>
    ),
    action: `Restore revision ${grouped(revision)}`,
  });
  if (isSure) {
    const result = await perform(writeEntry(name, then.value, kept(now)));
    notify(`Restored: ${shownName(name)} is as at revision ${revision}, in version ${result.version ?? "?"}`);
  }
}
