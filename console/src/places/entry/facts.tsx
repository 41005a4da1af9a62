/** What is known of an entry beside its value. Owns the words for it. */

import type { ComponentChildren } from "preact";
import type { StoredEntry } from "../../api/entries.js";
import { JsonText } from "../../api/json-text.js";
import { bytes, duration, grouped } from "../../text/words.js";

/** The facts. */
export function Facts({ entry }: { readonly entry: StoredEntry }) {
  const { value } = entry;
  const size = value instanceof JsonText ? new Blob([value.text]).size : value.length;
  return (
    <dl class="list entry-facts">
      <Fact name="Cas">{entry.cas ?? "none while it is locked"}</Fact>
      <Fact name="Version">{grouped(entry.version)}</Fact>
      <Fact name="Changed">at revision {grouped(entry.modRevision)}</Fact>
      <Fact name="Created">at revision {grouped(entry.createRevision)}</Fact>
      <Fact name="Content">
        {value instanceof JsonText ? "JSON" : "bytes"}, {bytes(size)}
      </Fact>
      <Fact name="Time to live">
        {entry.ttlMs === undefined ? "for ever" : `${duration(entry.ttlMs)} left`}
      </Fact>
      {entry.session !== undefined && <Fact name="Goes with session">{entry.session}</Fact>}
      {entry.locked && (
        <Fact name="Locked">{entry.lockMs === undefined ? "yes" : `for ${duration(entry.lockMs)} more`}</Fact>
      )}
    </dl>
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
