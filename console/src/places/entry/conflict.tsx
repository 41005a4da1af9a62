/**
 * A save that was refused because somebody else was faster: both versions, and what they come to together.
 *
 * Owns the choices for what both changed. Nothing is written here: what was merged goes into the editor, to be looked at and saved.
 */

import { useMemo, useState } from "preact/hooks";
import type { StoredEntry } from "../../api/entries.js";
import { JsonText } from "../../api/json-text.js";
import { compactJson, formatJson } from "../../json/format.js";
import { type Conflict as Clash, merge, pointerOf, type Side } from "../../json/merge.js";
import type { Json } from "../../json/scan.js";
import { counted } from "../../text/words.js";
import { Difference } from "../../ui/difference.js";
import { Icon } from "../../ui/icon.js";

/** What a conflict takes. */
export interface ConflictProps {
  /** The version that the editor began with. */
  readonly base: StoredEntry | undefined;
  readonly mine: Json;
  /** The entry as it is now; `undefined` where it is gone. */
  readonly theirs: StoredEntry | undefined;
  /** Goes on with this text, to be saved in place of the version that is there now. */
  readonly onResolve: (text: string) => void;
  readonly onDiscard: () => void;
}

/** The conflict. */
export function Conflict({ base, mine, theirs, onResolve, onDiscard }: ConflictProps) {
  const [choices, setChoices] = useState<ReadonlyMap<string, Side>>(new Map());
  const [baseTree, theirTree] = useMemo(() => [treeOf(base), treeOf(theirs)], [base, theirs]);
  const merged = useMemo(
    () => merge(baseTree, mine, theirTree, choices),
    [baseTree, mine, theirTree, choices],
  );
  const theirText = theirTree === undefined ? "" : formatJson(theirTree);
  const isGone = theirs === undefined;
  const canMerge = !isGone && theirTree !== undefined && merged.value !== undefined;
  return (
    <section class="conflict" aria-label="Both versions">
      <div class="advice warn" role="alert">
        <Icon name="warning" />
        <div>
          <p class="advice-title">
            {isGone ? "The entry was deleted since you read it" : "The entry has changed since you read it"}
          </p>
          <p>
            Your change was not saved, and nothing was overwritten (applied: no).{" "}
            {isGone
              ? "You can create it again with your text."
              : `It is at version ${theirs.version} now, cas ${theirs.cas ?? "none, since it is locked"}.`}
          </p>
        </div>
      </div>
      <h2>{isGone ? "Your text" : "From what is stored to your text"}</h2>
      <Difference label="From what is stored to your text" before={theirText} after={formatJson(mine)} />
      {canMerge && (
        <>
          <h2>Merged</h2>
          <p class="hint">
            {merged.conflicts.length === 0
              ? "The changes touch different fields, and fit together."
              : `${counted(merged.conflicts.length, "field was", "fields were")} changed on both sides. Choose for each:`}
          </p>
          {merged.conflicts.map((clash) => (
            <Choice
              key={pointerOf(clash.path)}
              clash={clash}
              side={choices.get(pointerOf(clash.path)) ?? "theirs"}
              onChoose={(side) => setChoices(new Map(choices).set(pointerOf(clash.path), side))}
            />
          ))}
          {merged.value !== undefined && (
            <Difference
              label="From what is stored to what was merged"
              before={theirText}
              after={formatJson(merged.value)}
            />
          )}
        </>
      )}
      <div class="toolbar">
        {canMerge && merged.value !== undefined && (
          <button
            type="button"
            class="button primary"
            onClick={() => merged.value !== undefined && onResolve(formatJson(merged.value))}
          >
            Use merged
          </button>
        )}
        <button type="button" class="button" onClick={() => onResolve(formatJson(mine))}>
          {isGone ? "Create it again with my text" : "Keep mine"}
        </button>
        <button type="button" class="button danger-text" onClick={onDiscard}>
          Discard my change
        </button>
      </div>
      <p class="hint">Each of the first two only fills the editor. It is stored when you save it there.</p>
    </section>
  );
}

function treeOf(entry: StoredEntry | undefined): Json | undefined {
  return entry?.value instanceof JsonText ? entry.value.tree : undefined;
}

interface ChoiceProps {
  readonly clash: Clash;
  readonly side: Side;
  readonly onChoose: (side: Side) => void;
}

function Choice({ clash, side, onChoose }: ChoiceProps) {
  const pointer = pointerOf(clash.path);
  const sides: readonly (readonly [Side, string])[] = [
    ["theirs", "Stored"],
    ["mine", "Yours"],
  ];
  return (
    <fieldset class="choice">
      <legend>
        <code>{pointer === "" ? "the whole document" : pointer}</code>
        <span class="hint"> was {short(clash.base)}</span>
      </legend>
      {sides.map(([which, name]) => (
        <label key={which} class={side === which ? "choice-side active" : "choice-side"}>
          <input
            type="radio"
            name={`choice${pointer}`}
            checked={side === which}
            onChange={() => onChoose(which)}
          />
          <span>{name}</span>
          <code>{short(clash[which])}</code>
        </label>
      ))}
    </fieldset>
  );
}

const SHORT_MAX = 200;

function short(value: Json | undefined): string {
  if (value === undefined) {
    return "not there";
  }
  const text = compactJson(value);
  return text.length > SHORT_MAX ? `${text.slice(0, SHORT_MAX)}…` : text;
}
