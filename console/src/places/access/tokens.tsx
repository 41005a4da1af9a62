/** The tokens, without their secrets: made, and taken away. */

import { useState } from "preact/hooks";
import type { TokenInfo } from "quorate";
import { listTokens, removeAccess } from "../../api/access.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { notify } from "../../state/notices.js";
import { perform } from "../../state/page.js";
import { usePages } from "../../state/pages.js";
import { isReadOnly } from "../../state/settings.js";
import { shownName } from "../../text/named.js";
import { moment } from "../../text/words.js";
import { Cell } from "../../ui/cell.js";
import { confirm } from "../../ui/confirm.js";
import { Icon } from "../../ui/icon.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Time } from "../../ui/time.js";
import { AccessList, isAdministrator, PAGE_ITEMS, useAttempt } from "./parts.js";
import { TokenForm } from "./token-form.js";

/** The view. */
export function TokensView() {
  const tokens = usePages("tokens", {
    request: (cursor) => listTokens(PAGE_ITEMS, cursor),
    items: (page) => page.tokens,
  });
  const { error, isBusy, attempt } = useAttempt(tokens.reload);
  const [isMaking, setMaking] = useState(false);
  const isOff = isReadOnly.value || isBusy;
  useShortcuts([
    { keys: "r", what: "Read again", group: "Access", run: tokens.reload },
    { keys: "n", what: "New token", group: "Access", run: () => setMaking(!isReadOnly.peek()) },
  ]);
  return (
    <>
      {error !== undefined && <Problem error={error} />}
      <div class="toolbar">
        <p class="hint">
          Who shows a token is its user. The cluster keeps a hash, so a secret is shown once.
        </p>
        <button
          type="button"
          class="button push"
          disabled={isOff || !isAdministrator()}
          onClick={() => setMaking(true)}
        >
          <Icon name="plus" />
          <span>New token</span>
        </button>
      </div>
      <AccessList what="tokens" source={tokens} empty={<p>A user needs a token to be known.</p>}>
        <table class="table stacked">
          <thead>
            <tr>
              <th>Token</th>
              <th>User</th>
              <th>What for</th>
              <th>Made</th>
              <th>Ends</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {tokens.items.map((token) => (
              <tr key={token.id}>
                <Cell label="Token">
                  <code>{token.id}</code>
                </Cell>
                <Cell label="User">
                  <KeyName name={token.user} />
                </Cell>
                <Cell label="What for" class="wrap">
                  {token.note === "" ? "–" : <KeyName name={token.note} />}
                </Cell>
                <Cell label="Made">
                  <Time at={token.created} />
                </Cell>
                <Cell label="Ends">
                  <Ends token={token} />
                </Cell>
                <Cell label="" class="row-actions">
                  <button
                    type="button"
                    class="button small danger-text"
                    disabled={isOff}
                    onClick={() => void attempt(() => revoke(token))}
                  >
                    Revoke
                  </button>
                </Cell>
              </tr>
            ))}
          </tbody>
        </table>
      </AccessList>
      {isMaking && <TokenForm user="" onClose={() => setMaking(false)} onDone={tokens.reload} />}
    </>
  );
}

function Ends({ token: { expires, expired } }: { readonly token: TokenInfo }) {
  if (expires === undefined) {
    return <>never by itself</>;
  }
  return (
    <>
      <time dateTime={expires}>{moment(expires)}</time>
      {expired && <span class="badge after">expired</span>}
    </>
  );
}

async function revoke({ id, user, note }: TokenInfo): Promise<void> {
  const isSure = await confirm({
    title: "Revoke this token?",
    body: (
      <p>
        The token <code>{id}</code> of <KeyName name={user} />
        {note !== "" && (
          <>
            {" ("}
            <KeyName name={note} />)
          </>
        )}{" "}
        is good for nothing from then on, on every node. Watches that go by it end within seconds. It cannot
        be brought back; make another.
      </p>
    ),
    action: "Revoke the token",
    isDangerous: true,
  });
  if (isSure) {
    await perform(removeAccess("token", id));
    notify(`Revoked: the token ${id} of ${shownName(user)}`);
  }
}
