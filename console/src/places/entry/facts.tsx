/** What is known of an entry beside its value. Owns the words for it. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { readChange, type StoredEntry } from "../../api/entries.js";
import { JsonText } from "../../api/json-text.js";
import { useRequest } from "../../state/page.js";
import { bytes, duration, grouped } from "../../text/words.js";
import { KeyName } from "../../ui/key-name.js";
import { Time } from "../../ui/time.js";
import { Lifetime } from "./lifetime.js";

/** What the facts take. */
export interface FactsProps {
  readonly entry: StoredEntry;
  /** Why its time to live cannot be changed now. */
  readonly whyNot: string | undefined;
  /** It was changed here. */
  readonly onChanged: () => void;
}

/** The facts. */
export function Facts({ entry, whyNot, onChanged }: FactsProps) {
  const { value } = entry;
  const [isSetting, setSetting] = useState(false);
  const size = value instanceof JsonText ? new Blob([value.text]).size : value.length;
  return (
    <>
      <dl class="list entry-facts">
        <Fact name="Cas">{entry.cas ?? "none while it is locked"}</Fact>
        <Fact name="Version">{grouped(entry.version)}</Fact>
        <Fact name="Changed">
          <Changed key={entry.modRevision} entry={entry} />
        </Fact>
        <Fact name="Created">at revision {grouped(entry.createRevision)}</Fact>
        <Fact name="Content">
          {value instanceof JsonText ? "JSON" : "bytes"}, {bytes(size)}
        </Fact>
        <Fact name="Time to live">
          {entry.ttlMs === undefined ? "for ever" : `${duration(entry.ttlMs)} left`}{" "}
          <button
            type="button"
            class="button small"
            disabled={whyNot !== undefined}
            title={whyNot}
            onClick={() => setSetting(true)}
          >
            Set
          </button>
        </Fact>
        {entry.session !== undefined && <Fact name="Goes with session">{entry.session}</Fact>}
        {entry.locked && (
          <Fact name="Locked">
            {entry.lockMs === undefined ? "yes" : `for ${duration(entry.lockMs)} more`}
          </Fact>
        )}
      </dl>
      {isSetting && <Lifetime entry={entry} onClose={() => setSetting(false)} onChanged={onChanged} />}
    </>
  );
}

/** When it was changed last and by whom, as far as that is remembered and may be read. */
function Changed({ entry }: { readonly entry: StoredEntry }) {
  const { data: line } = useRequest(readChange(entry.key, entry.modRevision));
  return (
    <>
      {line !== undefined && (
        <>
          <Time at={line.time} />
          {line.principal !== undefined && (
            <>
              {" by "}
              <KeyName name={line.principal} />
            </>
          )}
          {", "}
        </>
      )}
      at revision {grouped(entry.modRevision)}
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
