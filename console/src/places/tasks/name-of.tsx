/** A way to a queue by its name, for who may not list them all. */

import { useState } from "preact/hooks";
import { readablePrefixes } from "../../state/identity.js";
import { addressOf, go } from "../../state/route.js";
import { textOfShown } from "../../text/named.js";
import { KeyName } from "../../ui/key-name.js";

/** Asks for the name of a queue. */
export function NameOf() {
  const [name, setName] = useState("");
  const prefixes = readablePrefixes();
  return (
    <form
      class="block"
      onSubmit={(event) => {
        event.preventDefault();
        void go(addressOf("tasks", { queue: textOfShown(name) }));
      }}
    >
      <p>
        A list of all queues needs the permission <code>read</code> on everything. A queue whose name you know
        can be opened
        {prefixes.length > 0 && (
          <>
            {" where it begins with "}
            {prefixes.map((prefix, at) => (
              <>
                {at > 0 && " or "}
                <KeyName name={prefix} />
              </>
            ))}
          </>
        )}
        .
      </p>
      <div class="toolbar">
        <input
          class="mono grow"
          type="text"
          aria-label="Name of the queue"
          placeholder="Name of the queue"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button type="submit" class="button primary" disabled={name === ""}>
          Open
        </button>
      </div>
    </form>
  );
}
