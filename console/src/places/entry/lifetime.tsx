/** Asks how long an entry shall live from now on. Owns the form. */

import { useState } from "preact/hooks";
import type { QuorateError } from "quorate";
import { type StoredEntry, touchEntry } from "../../api/entries.js";
import { asError } from "../../api/errors.js";
import { notify } from "../../state/notices.js";
import { perform } from "../../state/page.js";
import { parseDuration } from "../../text/duration.js";
import { shownName } from "../../text/named.js";
import { duration } from "../../text/words.js";
import { Dialog } from "../../ui/dialog.js";
import { Problem } from "../../ui/problem.js";
import { faultOfLife } from "./draft.js";

/** What the form takes. */
export interface LifetimeProps {
  readonly entry: StoredEntry;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

/** The form. */
export function Lifetime({ entry, onClose, onChanged }: LifetimeProps) {
  const [life, setLife] = useState("");
  const [error, setError] = useState<QuorateError | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const fault = faultOfLife(life);
  const set = async () => {
    const ttlMs = parseDuration(life) ?? 0;
    setBusy(true);
    try {
      await perform(touchEntry(entry.key, ttlMs));
    } catch (error) {
      setError(asError(error));
      setBusy(false);
      return;
    }
    notify(
      `${shownName(entry.key)} lives ${ttlMs === 0 ? "for ever" : `for ${duration(ttlMs)} from now on`}`,
    );
    onClose();
    onChanged();
  };
  return (
    <Dialog
      title="Time to live"
      onClose={onClose}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="submit"
            form="lifetime"
            class="button primary"
            disabled={isBusy || fault !== undefined}
          >
            {life.trim() === "" ? "Let it live for ever" : "Set the time to live"}
          </button>
        </>
      }
    >
      <form
        id="lifetime"
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void set();
        }}
      >
        {error !== undefined && <Problem error={error} />}
        <LifeField life={life} onLife={setLife} />
        <p class="hint">It counts from now on. The value stays as it is.</p>
      </form>
    </Dialog>
  );
}

/** A span of time, or none for ever. */
export function LifeField({
  life,
  onLife,
  otherwise = "for ever",
}: {
  readonly life: string;
  readonly onLife: (life: string) => void;
  /** What none means. */
  readonly otherwise?: string;
}) {
  const fault = faultOfLife(life);
  return (
    <label class="field">
      <span>Time to live</span>
      <input
        type="text"
        autocomplete="off"
        spellcheck={false}
        placeholder={`${otherwise}; or 90s, 2h, 7d`}
        aria-invalid={fault !== undefined}
        value={life}
        onInput={(event) => onLife(event.currentTarget.value)}
      />
      {fault !== undefined && <span class="field-error">{fault}</span>}
    </label>
  );
}
