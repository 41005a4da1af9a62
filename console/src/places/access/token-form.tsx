/** Makes a token and shows its secret, this once. Owns that the secret is nowhere else: not in an address, a notice, or what is copied. */

import { useState } from "preact/hooks";
import type { TokenCreated } from "quorate";
import { createToken } from "../../api/access.js";
import { perform } from "../../state/page.js";
import { parseDuration } from "../../text/duration.js";
import { shownName, textOfShown } from "../../text/named.js";
import { moment } from "../../text/words.js";
import { CopyButton } from "../../ui/copy-button.js";
import { Dialog } from "../../ui/dialog.js";
import { KeyName } from "../../ui/key-name.js";
import { AccessForm, Line, useAttempt } from "./parts.js";

/** What the form takes. */
export interface TokenFormProps {
  /** Whose it is to be; empty where that is asked for. */
  readonly user: string;
  readonly onClose: () => void;
  /** A token was made. */
  readonly onDone: () => void;
}

/** The form, and then the secret. */
export function TokenForm({ user: known, onClose, onDone }: TokenFormProps) {
  const [user, setUser] = useState(shownName(known));
  const [note, setNote] = useState("");
  const [span, setSpan] = useState("90d");
  const [made, setMade] = useState<TokenCreated | undefined>(undefined);
  const form = useAttempt(onDone);
  if (made !== undefined) {
    return <Secret made={made} onClose={onClose} />;
  }
  return (
    <AccessForm
      title={known === "" ? "New token" : `New token of ${shownName(known)}`}
      action="Make the token"
      missing={missingIn(user, span)}
      error={form.error}
      isBusy={form.isBusy}
      onClose={onClose}
      onSubmit={() =>
        void form.attempt(async () => {
          setMade(
            await perform(createToken({ user: textOfShown(user), note, expiresInMs: parseDuration(span) })),
          );
        })
      }
    >
      <Line label="User" value={user} isFixed={known !== ""} onValue={setUser} />
      <Line label="What it is for, for people" value={note} placeholder="the shop" onValue={setNote} />
      <Line label="It ends after (90d, 12h; empty: never by itself)" value={span} onValue={setSpan} />
    </AccessForm>
  );
}

function missingIn(user: string, span: string): string | undefined {
  if (user === "") {
    return "Name the user.";
  }
  return span.trim() !== "" && (parseDuration(span) ?? 0) <= 0 ? "Say after how long: 90d, 12h." : undefined;
}

function Secret({ made, onClose }: { readonly made: TokenCreated; readonly onClose: () => void }) {
  return (
    <Dialog
      title="The token, this once"
      onClose={onClose}
      footer={
        <button type="button" class="button primary" onClick={onClose}>
          I have it
        </button>
      }
    >
      <p>
        Whoever shows it is the user <KeyName name={made.user} />
        {made.expires === undefined ? ", until it is revoked" : `, until ${moment(made.expires)}`}. The
        cluster keeps only a hash of it: once this window is closed, nobody can show it again.
      </p>
      <div class="command secret">
        <code>{made.token}</code>
        <CopyButton text={made.token} what="the token" />
      </div>
    </Dialog>
  );
}
