/** Where somebody signs in. Owns the form. A cluster gives its users tokens, not passwords. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { QuorateError } from "quorate";
import { asError } from "../api/errors.js";
import { identity, signIn } from "../state/identity.js";
import { Mark } from "./mark.js";

/** The form. */
export function SignIn() {
  const [token, setToken] = useState("");
  const [isKept, setKept] = useState(true);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<QuorateError | undefined>(undefined);
  const known = identity.value;
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await signIn(token.trim(), isKept);
    } catch (error) {
      setError(asError(error));
    }
    setBusy(false);
  };
  return (
    <main class="sign-in">
      <form
        class="sign-in-card"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Mark />
        <h1>Sign in</h1>
        <p>
          {known.kind === "unknown" && known.refused
            ? "Your token is not valid any more. Sign in with another one."
            : "This cluster wants to know who asks."}
        </p>
        <label class="field">
          <span>Token</span>
          <input
            ref={field}
            type="password"
            name="token"
            autocomplete="current-password"
            spellcheck={false}
            placeholder="qt_…"
            required
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <label class="check">
          <input type="checkbox" checked={isKept} onChange={() => setKept(!isKept)} />
          <span>Keep it until this tab is closed</span>
        </label>
        {error !== undefined && (
          <p class="field-error" role="alert">
            {error.code === "unauthenticated" ? "The cluster does not know this token." : error.detail}
          </p>
        )}
        <button type="submit" class="button primary wide" disabled={isBusy || token.trim() === ""}>
          {isBusy ? "Asking …" : "Sign in"}
        </button>
        <p class="hint">
          Somebody who may administer the cluster makes a token with <code>quorate token create USER</code>.
          It is sent to this node only, and never part of an address.
        </p>
      </form>
    </main>
  );
}
