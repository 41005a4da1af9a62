/** The roles and what they allow: made, changed, deleted. */

import { useState } from "preact/hooks";
import { type Grant, keyOfShown, type RoleInfo } from "quorate";
import { listRoles, removeAccess, setRole } from "../../api/access.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { notify } from "../../state/notices.js";
import { perform } from "../../state/page.js";
import { usePages } from "../../state/pages.js";
import { isReadOnly } from "../../state/settings.js";
import { shownName, textOfShown } from "../../text/named.js";
import { Cell } from "../../ui/cell.js";
import { confirm } from "../../ui/confirm.js";
import { Icon } from "../../ui/icon.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Time } from "../../ui/time.js";
import { Grants } from "./grant.js";
import { AccessForm, AccessList, isAdministrator, Line, PAGE_ITEMS, useAttempt } from "./parts.js";
import { PERMISSIONS, type Permission } from "./rights.js";

/** The view. */
export function RolesView() {
  const roles = usePages("roles", {
    request: (cursor) => listRoles(PAGE_ITEMS, cursor),
    items: (page) => page.roles,
  });
  const { error, isBusy, attempt } = useAttempt(roles.reload);
  const [edited, setEdited] = useState<RoleInfo | "new" | undefined>(undefined);
  const isOff = isReadOnly.value || isBusy;
  useShortcuts([
    { keys: "r", what: "Read again", group: "Access", run: roles.reload },
    {
      keys: "n",
      what: "New role",
      group: "Access",
      run: () => setEdited(isReadOnly.peek() ? undefined : "new"),
    },
  ]);
  return (
    <>
      {error !== undefined && <Problem error={error} />}
      <div class="toolbar">
        <p class="hint">
          A grant is a permission on all names that begin with a prefix. <code>write</code> and{" "}
          <code>lock</code> read, too.
        </p>
        <button
          type="button"
          class="button push"
          disabled={isOff || !isAdministrator()}
          onClick={() => setEdited("new")}
        >
          <Icon name="plus" />
          <span>New role</span>
        </button>
      </div>
      <AccessList what="roles" source={roles} empty={<p>A role says what those who have it may do.</p>}>
        <table class="table stacked">
          <thead>
            <tr>
              <th>Role</th>
              <th>Allows</th>
              <th>Made</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {roles.items.map((role) => (
              <tr key={role.role}>
                <Cell label="Role">
                  <strong>
                    <KeyName name={role.role} />
                  </strong>
                </Cell>
                <Cell label="Allows" class="wrap">
                  <Grants grants={role.grants} />
                </Cell>
                <Cell label="Made">
                  <Time at={role.created} />
                </Cell>
                <Cell label="" class="row-actions">
                  <button type="button" class="button small" disabled={isOff} onClick={() => setEdited(role)}>
                    Grants
                  </button>
                  <button
                    type="button"
                    class="button small danger-text"
                    disabled={isOff}
                    onClick={() => void attempt(() => remove(role))}
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
        <RoleForm
          role={edited === "new" ? undefined : edited}
          onClose={() => setEdited(undefined)}
          onDone={() => {
            setEdited(undefined);
            roles.reload();
          }}
        />
      )}
    </>
  );
}

async function remove({ role }: RoleInfo): Promise<void> {
  const isSure = await confirm({
    title: "Delete this role?",
    body: (
      <p>
        The role <KeyName name={role} /> is deleted. While a user has it, that is refused.
      </p>
    ),
    action: "Delete the role",
    isDangerous: true,
  });
  if (isSure) {
    await perform(removeAccess("role", role));
    notify(`Deleted: the role ${shownName(role)}`);
  }
}

interface RoleFormProps {
  /** `undefined` for a new one. */
  readonly role: RoleInfo | undefined;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

const NEW_GRANT: Grant = { permission: "read", prefix: "" };

function RoleForm({ role, onClose, onDone }: RoleFormProps) {
  const [name, setName] = useState(shownName(role?.role ?? ""));
  const [grants, setGrants] = useState<readonly Grant[]>(typed(role?.grants ?? [NEW_GRANT], shownName));
  const form = useAttempt(onDone);
  return (
    <AccessForm
      title={role === undefined ? "New role" : `Grants of ${shownName(role.role)}`}
      action={role === undefined ? "Make the role" : "Set the grants"}
      missing={name === "" ? "Name the role." : undefined}
      error={form.error}
      isBusy={form.isBusy}
      onClose={onClose}
      onSubmit={() =>
        void form.attempt(async () => {
          const known = textOfShown(name);
          await perform(setRole(known, typed(grants, keyOfShown)));
          notify(`Set: the role ${shownName(known)}`);
        })
      }
    >
      <Line label="Name" value={name} isFixed={role !== undefined} onValue={setName} />
      <fieldset class="choice checks">
        <legend>It allows</legend>
        {grants.map((grant, at) => (
          <GrantLine
            key={at}
            number={at + 1}
            grant={grant}
            onGrant={(grant) => setGrants(grants.with(at, grant))}
            onRemove={() => setGrants(grants.filter((_, other) => other !== at))}
          />
        ))}
        <button type="button" class="button small" onClick={() => setGrants([...grants, NEW_GRANT])}>
          <Icon name="plus" />
          <span>Grant</span>
        </button>
      </fieldset>
      <p class="hint">
        A prefix is compared byte by byte: <code>orders/</code> is good for <code>orders/1</code>, and neither
        for <code>orders</code> nor for <code>orders-old/1</code>. An empty one means everything
        {role !== undefined && ". The grants hold at once for all who have the role"}.
      </p>
    </AccessForm>
  );
}

/** Grants with their prefixes as they are typed, or as they are meant. */
function typed(grants: readonly Grant[], form: (prefix: string) => string): Grant[] {
  return grants.map(({ permission, prefix }) => ({ permission, prefix: form(prefix) }));
}

interface GrantLineProps {
  readonly number: number;
  readonly grant: Grant;
  readonly onGrant: (grant: Grant) => void;
  readonly onRemove: () => void;
}

function GrantLine({ number, grant, onGrant, onRemove }: GrantLineProps) {
  return (
    <div class="grant-line">
      <select
        aria-label={`Permission of grant ${number}`}
        value={grant.permission}
        onChange={(event) => onGrant({ ...grant, permission: event.currentTarget.value as Permission })}
      >
        {PERMISSIONS.map(({ id }) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </select>
      <input
        class="mono"
        type="text"
        aria-label={`Prefix of grant ${number}`}
        placeholder="everything"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        value={grant.prefix}
        onInput={(event) => onGrant({ ...grant, prefix: event.currentTarget.value })}
      />
      <button
        type="button"
        class="button quiet square"
        aria-label={`Remove grant ${number}`}
        onClick={onRemove}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}
