/** One change that is open: what it was before and is since, and in which lines that differs. Owns the words for a change. */

import type { ComponentChildren } from "preact";
import type { Stored } from "../../api/entries.js";
import { JsonText } from "../../api/json-text.js";
import { addressOf } from "../../state/route.js";
import { shownName } from "../../text/named.js";
import { grouped, moment } from "../../text/words.js";
import { Difference } from "../../ui/difference.js";
import { Icon } from "../../ui/icon.js";
import { KeyName } from "../../ui/key-name.js";
import { dump } from "../entry/bytes.js";
import type { ChangeLine } from "./follower.js";

/** Why an entry is gone, in words. */
const CAUSES: Readonly<Record<string, string>> = {
  removed: "deleted",
  expired: "expired",
  session_ended: "session ended",
};

/** What happened, in a word or two. */
export function whatOf({ event }: ChangeLine): string {
  if (event.type === "delete") {
    const cause = event.cause ?? "removed";
    return CAUSES[cause] ?? cause.replace(/_/g, " ");
  }
  return event.prev === undefined ? "created" : "written";
}

/** The colour of what happened. */
export function toneOf({ event }: ChangeLine): string {
  return event.type === "delete" ? "badge bad" : event.prev === undefined ? "badge good" : "badge quiet";
}

/** What the panel takes. */
export interface ChangePanelProps {
  readonly line: ChangeLine;
  readonly onClose: () => void;
}

/** The panel. */
export function ChangePanel({ line, onClose }: ChangePanelProps) {
  const { event, step, place } = line;
  return (
    <section class="panel" aria-label={`Change of ${shownName(event.key)}`}>
      <header class="panel-head">
        <h2>
          <KeyName name={event.key} />
        </h2>
        <button type="button" class="button quiet square small" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <div class="toolbar">
        <a class="button small" href={addressOf("entry", { key: event.key })}>
          Entry
        </a>
        <a class="button small" href={addressOf("history", { key: event.key, to: event.revision })}>
          History
        </a>
      </div>
      <dl class="list">
        <Fact name="What">
          <span class={toneOf(line)}>{whatOf(line)}</span>
        </Fact>
        <Fact name="Revision">{grouped(event.revision)}</Fact>
        {event.type === "put" && <Fact name="Version">{grouped(event.entry.version)}</Fact>}
        <Fact name="Came">{moment(new Date(line.at).toISOString())}</Fact>
        {step.size > 1 && (
          <Fact name="In one step">
            change {place} of {step.size} that are shown of its revision
          </Fact>
        )}
      </dl>
      <Difference
        label={`What changed in ${shownName(event.key)}`}
        before={textOf(event.prev?.value)}
        after={event.type === "put" ? textOf(event.entry.value) : ""}
      />
    </section>
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

/** The text of a value; empty where there was none. */
function textOf(value: Stored | undefined): string {
  if (value === undefined) {
    return "";
  }
  return value instanceof JsonText ? value.pretty : dump(value);
}
