/** Asks for the key of a new entry. Owns the form; the entry itself is written in its own place. */

import { useState } from "preact/hooks";
import { keyOfShown } from "quorate";
import { addressOf, go } from "../../state/route.js";
import { shownName } from "../../text/named.js";
import { Dialog } from "../../ui/dialog.js";

/** The form. */
export function NewEntry({ prefix, onClose }: { readonly prefix: string; readonly onClose: () => void }) {
  const [key, setKey] = useState(shownName(prefix));
  const submit = () => {
    onClose();
    void go(addressOf("entry", { key: keyOfShown(key) }));
  };
  return (
    <Dialog
      title="New entry"
      onClose={onClose}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="new-entry" class="button primary" disabled={key === ""}>
            Go on
          </button>
        </>
      }
    >
      <form
        id="new-entry"
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <label class="field">
          <span>Key</span>
          <input
            class="mono"
            type="text"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            required
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <p class="hint">
          Its value is written on the next page. Nothing is created before you save it there.
        </p>
      </form>
    </Dialog>
  );
}
