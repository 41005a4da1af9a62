/** Who we are and what we may, and whether somebody may do something. Owns the question; the rule is `rights`'. */

import { useEffect, useState } from "preact/hooks";
import { keyOfShown } from "quorate";
import { listRoles, readUser } from "../../api/access.js";
import { readSelf } from "../../api/cluster.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { useRequest } from "../../state/page.js";
import { usePages } from "../../state/pages.js";
import { route, setQuery } from "../../state/route.js";
import { shownName, textOfShown } from "../../text/named.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Loading, Shown } from "../../ui/states.js";
import { Grants, GrantText } from "./grant.js";
import { near, PERMISSIONS, type Permission, type Reason, ROOT, reasons, type Source } from "./rights.js";

const PAGE_ROLES = 1_000;

/** The view. */
export function RightsView() {
  const self = useRequest(readSelf());
  useShortcuts([{ keys: "r", what: "Read again", group: "Access", run: self.reload }]);
  return (
    <div class="columns">
      <section class="block">
        <h2>You</h2>
        <Shown what="who you are" source={self}>
          {({ user, grants, accessRevision }) => (
            <dl class="list">
              <div>
                <dt>User</dt>
                <dd>{user === undefined ? "anonymous (authentication off)" : <KeyName name={user} />}</dd>
              </div>
              <div>
                <dt>May</dt>
                <dd>
                  <Grants grants={grants} />
                </dd>
              </div>
              <div>
                <dt>Policy revision</dt>
                <dd>{accessRevision}</dd>
              </div>
            </dl>
          )}
        </Shown>
      </section>
      <Question self={self.data?.user} />
    </div>
  );
}

interface Asked {
  readonly user: string;
  readonly permission: Permission;
  readonly name: string;
}

function askedIn(query: URLSearchParams): Asked {
  const permission = PERMISSIONS.find(({ id }) => id === query.get("permission"))?.id ?? "write";
  return { user: query.get("user") ?? "", permission, name: keyOfShown(query.get("name") ?? "") };
}

function Question({ self }: { readonly self: string | undefined }) {
  const asked = askedIn(route.value.query);
  const [draft, setDraft] = useState({ ...asked, user: shownName(asked.user), name: shownName(asked.name) });
  const [turn, setTurn] = useState(0);
  const set = (part: Partial<Asked>) => setDraft({ ...draft, ...part });
  const user = textOfShown(draft.user) || (self ?? "");
  return (
    <section class="block">
      <h2>Check a permission</h2>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setQuery({ view: "rights", ...draft, user }, "push");
          setTurn(turn + 1);
        }}
      >
        <label class="field">
          <span>User</span>
          <input
            class="mono"
            type="text"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            placeholder={self === undefined ? "name of a user" : shownName(self)}
            value={draft.user}
            onInput={(event) => set({ user: event.currentTarget.value })}
          />
        </label>
        <label class="field">
          <span>Permission</span>
          <select
            value={draft.permission}
            onChange={(event) => set({ permission: event.currentTarget.value as Permission })}
          >
            {PERMISSIONS.map(({ id, what }) => (
              <option key={id} value={id}>
                {id}: {what}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>On the key, or the name of a lock, a queue, a sequence …</span>
          <input
            class="mono"
            type="text"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            placeholder="orders/o1"
            value={draft.name}
            onInput={(event) => set({ name: event.currentTarget.value })}
          />
        </label>
        <div class="toolbar">
          <button type="submit" class="button primary" disabled={user === ""}>
            Ask
          </button>
        </div>
      </form>
      {asked.user !== "" && <Answer key={`${turn}\n${JSON.stringify(asked)}`} asked={asked} self={self} />}
    </section>
  );
}

function Answer({ asked, self }: { readonly asked: Asked; readonly self: string | undefined }) {
  if (asked.user === ROOT) {
    return (
      <Verdict asked={asked} sources={[{ role: undefined, grants: [{ permission: "admin", prefix: "" }] }]} />
    );
  }
  return asked.user === self ? <OfSelf asked={asked} /> : <OfAnother asked={asked} />;
}

/** The cluster tells everybody what they may themselves. */
function OfSelf({ asked }: { readonly asked: Asked }) {
  const self = useRequest(readSelf());
  return (
    <Shown what="what you may" source={self}>
      {({ grants }) => <Verdict asked={asked} sources={[{ role: undefined, grants }]} />}
    </Shown>
  );
}

function OfAnother({ asked }: { readonly asked: Asked }) {
  const user = useRequest(readUser(asked.user));
  const roles = usePages("roles", {
    request: (cursor) => listRoles(PAGE_ROLES, cursor),
    items: (page) => page.roles,
  });
  const { hasMore, isReading, readOn } = roles;
  useEffect(() => {
    if (hasMore && !isReading) {
      readOn();
    }
  }, [hasMore, isReading]);
  const error = user.error ?? roles.error;
  if (error !== undefined) {
    return (
      <>
        <Problem error={error} />
        <p class="hint">Who may not administer the cluster can ask for themselves only.</p>
      </>
    );
  }
  if (user.isLoading || !roles.isThere || hasMore) {
    return <Loading what="the user and the roles" lines={2} />;
  }
  if (user.data === undefined) {
    return (
      <p role="status">
        There is no user <KeyName name={asked.user} />, so nobody can do anything under that name.
      </p>
    );
  }
  const has = new Set(user.data.roles);
  const sources = roles.items
    .filter(({ role }) => has.has(role))
    .map(({ role, grants }) => ({ role, grants }));
  return <Verdict asked={asked} sources={sources} />;
}

interface VerdictProps {
  readonly asked: Asked;
  readonly sources: readonly Source[];
}

function Verdict({ asked, sources }: VerdictProps) {
  const { user, permission, name } = asked;
  const why = reasons(sources, permission, name);
  const isAllowed = why.length > 0;
  const others = isAllowed ? [] : near(sources, permission, name);
  return (
    <section class={`headline verdict ${isAllowed ? "" : "bad"}`} role="status">
      <p class="headline-text">
        <span class={`dot ${isAllowed ? "good" : "bad"}`} aria-hidden="true" />
        {isAllowed ? "Yes" : "No"}:{" "}
        <span>
          <KeyName name={user} /> may {isAllowed ? "" : "not "}
          {permission} {name === "" ? "everything" : <KeyName name={name} />}
        </span>
      </p>
      {user === ROOT && <p class="hint">It is the user that there always is, with every right.</p>}
      {isAllowed ? (
        <Reasons title="Allowed by" list={why} />
      ) : (
        <p>
          It needs a role with <GrantText grant={{ permission, prefix: name }} /> or with a prefix of that.
        </p>
      )}
      {others.length > 0 && <Reasons title="What comes near" list={others} />}
      <p class="hint">
        Worked out on this page from the roles of the user as they are now: the API answers no such question.
        A lock, a guard or the rules of a collection can refuse it all the same.
      </p>
    </section>
  );
}

function Reasons({ title, list }: { readonly title: string; readonly list: readonly Reason[] }) {
  return (
    <div>
      <p class="hint">{title}</p>
      <ul class="grants">
        {list.map(({ role, grant }) => (
          <li key={`${role} ${grant.permission} ${grant.prefix}`}>
            <GrantText grant={grant} />
            {role !== undefined && (
              <span class="hint">
                {" "}
                by the role <KeyName name={role} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
