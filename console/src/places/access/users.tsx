/** The users and their roles: made, changed, deleted. */

import { useState } from "preact/hooks";
import type { UserInfo } from "quorate";
import { listRoles, listUsers, removeAccess, setUser } from "../../api/access.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { notify } from "../../state/notices.js";
import { perform } from "../../state/page.js";
import { usePages } from "../../state/pages.js";
import { addressOf } from "../../state/route.js";
import { isReadOnly } from "../../state/settings.js";
import { shownName, textOfShown } from "../../text/named.js";
import { Cell } from "../../ui/cell.js";
import { confirm } from "../../ui/confirm.js";
import { Icon } from "../../ui/icon.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Time } from "../../ui/time.js";
import { AccessForm, AccessList, isAdministrator, Line, PAGE_ITEMS, useAttempt } from "./parts.js";
import { TokenForm } from "./token-form.js";

/** The view. */
export function UsersView() {
  const users = usePages("users", {
    request: (cursor) => listUsers(PAGE_ITEMS, cursor),
    items: (page) => page.users,
  });
  const { error, isBusy, attempt } = useAttempt(users.reload);
  const [edited, setEdited] = useState<UserInfo | "new" | undefined>(undefined);
  const [tokenOf, setTokenOf] = useState<string | undefined>(undefined);
  const isOff = isReadOnly.value || isBusy;
  useShortcuts([
    { keys: "r", what: "Read again", group: "Access", run: users.reload },
    {
      keys: "n",
      what: "New user",
      group: "Access",
      run: () => setEdited(isReadOnly.peek() ? undefined : "new"),
    },
  ]);
  return (
    <>
      {error !== undefined && <Problem error={error} />}
      <div class="toolbar">
        <p class="hint">
          A user may do what any of its roles allows. <code>root</code> is always there, with every right.
        </p>
        <button
          type="button"
          class="button push"
          disabled={isOff || !isAdministrator()}
          onClick={() => setEdited("new")}
        >
          <Icon name="plus" />
          <span>New user</span>
        </button>
      </div>
      <AccessList what="users" source={users} empty={<p>Make a role first, then a user that has it.</p>}>
        <table class="table stacked">
          <thead>
            <tr>
              <th>User</th>
              <th>Roles</th>
              <th>Made</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {users.items.map((user) => (
              <tr key={user.user}>
                <Cell label="User">
                  <strong>
                    <KeyName name={user.user} />
                  </strong>
                </Cell>
                <Cell label="Roles" class="wrap">
                  <Roles names={user.roles} />
                </Cell>
                <Cell label="Made">
                  <Time at={user.created} />
                </Cell>
                <Cell label="" class="row-actions">
                  <a class="button small" href={addressOf("access", { view: "rights", user: user.user })}>
                    May it …?
                  </a>
                  <button
                    type="button"
                    class="button small"
                    disabled={isOff}
                    onClick={() => setTokenOf(user.user)}
                  >
                    New token
                  </button>
                  <button type="button" class="button small" disabled={isOff} onClick={() => setEdited(user)}>
                    Roles
                  </button>
                  <button
                    type="button"
                    class="button small danger-text"
                    disabled={isOff}
                    onClick={() => void attempt(() => remove(user))}
                  >
                    Delete
                  </button>
                </Cell>
              </tr>
            ))}
          </tbody>
        </table>
      </AccessList>
      {edited !== undefined && (
        <UserForm
          user={edited === "new" ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onDone={() => {
            setEdited(undefined);
            users.reload();
          }}
        />
      )}
      {tokenOf !== undefined && (
        <TokenForm user={tokenOf} onClose={() => setTokenOf(undefined)} onDone={() => undefined} />
      )}
    </>
  );
}

function Roles({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) {
    return <span class="hint">none: it may do nothing</span>;
  }
  return (
    <>
      {names.map((name) => (
        <span key={name} class="badge quiet">
          <KeyName name={name} />
        </span>
      ))}
    </>
  );
}

async function remove({ user }: UserInfo): Promise<void> {
  const isSure = await confirm({
    title: "Delete this user?",
    body: (
      <p>
        <KeyName name={user} /> is deleted, and all its tokens with it. Whatever is asked with one of them is
        refused from then on, on every node. What it has written stays.
      </p>
    ),
    action: "Delete the user",
    isDangerous: true,
  });
  if (isSure) {
    await perform(removeAccess("user", user));
    notify(`Deleted: the user ${shownName(user)}`);
  }
}

interface UserFormProps {
  /** `undefined` for a new one. */
  readonly user: UserInfo | undefined;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function UserForm({ user, onClose, onDone }: UserFormProps) {
  const [name, setName] = useState(shownName(user?.user ?? ""));
  const [chosen, setChosen] = useState<readonly string[]>(user?.roles ?? []);
  const roles = usePages("roles", {
    request: (cursor) => listRoles(PAGE_ITEMS, cursor),
    items: (page) => page.roles,
  });
  const form = useAttempt(onDone);
  const names = [...new Set([...(user?.roles ?? []), ...roles.items.map(({ role }) => role)])];
  const toggle = (role: string) =>
    setChosen(chosen.includes(role) ? chosen.filter((other) => other !== role) : [...chosen, role]);
  return (
    <AccessForm
      title={user === undefined ? "New user" : `Roles of ${shownName(user.user)}`}
      action={user === undefined ? "Make the user" : "Set the roles"}
      missing={name === "" ? "Name the user." : undefined}
      error={form.error ?? roles.error}
      isBusy={form.isBusy}
      onClose={onClose}
      onSubmit={() =>
        void form.attempt(async () => {
          const known = textOfShown(name);
          await perform(setUser(known, chosen));
          notify(`Set: the user ${shownName(known)}`);
        })
      }
    >
      <Line label="Name" value={name} isFixed={user !== undefined} onValue={setName} />
      <fieldset class="choice checks">
        <legend>Roles</legend>
        {roles.isThere && names.length === 0 && <p class="hint">There are no roles yet.</p>}
        {names.map((role) => (
          <label key={role} class="check">
            <input type="checkbox" checked={chosen.includes(role)} onChange={() => toggle(role)} />
            <KeyName name={role} />
          </label>
        ))}
        {roles.hasMore && (
          <button type="button" class="button small" onClick={roles.readOn}>
            Show more roles
          </button>
        )}
      </fieldset>
      <p class="hint">They hold at once, on every node.</p>
    </AccessForm>
  );
}
