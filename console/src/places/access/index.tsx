/**
 * Who may do what, and who did: rights, users, roles, tokens, and the trail of a key.
 *
 * Owns the views and that the one that is shown stands in the address.
 */

import type { ComponentType } from "preact";
import { useShortcuts } from "../../keyboard/keys.js";
import { identity } from "../../state/identity.js";
import { addressOf, go, route } from "../../state/route.js";
import { Icon } from "../../ui/icon.js";
import { Page } from "../../ui/page.js";
import { AuditView } from "./audit.js";
import { RightsView } from "./rights-view.js";
import { RolesView } from "./roles.js";
import { TokensView } from "./tokens.js";
import { UsersView } from "./users.js";

interface View {
  readonly id: string;
  readonly title: string;
  readonly content: ComponentType;
}

const VIEWS: readonly View[] = [
  { id: "rights", title: "Rights", content: RightsView },
  { id: "users", title: "Users", content: UsersView },
  { id: "roles", title: "Roles", content: RolesView },
  { id: "tokens", title: "Tokens", content: TokensView },
  { id: "audit", title: "Audit", content: AuditView },
];

/** The place. */
export default function AccessPlace() {
  const wanted = route.value.query.get("view");
  const view = VIEWS.find(({ id }) => id === wanted) ?? (VIEWS[0] as View);
  const step = (by: number) => {
    // The key may come again before this was drawn anew.
    const id = route.peek().query.get("view") ?? view.id;
    const at = VIEWS.findIndex((view) => view.id === id);
    const next = VIEWS[(at + by + VIEWS.length) % VIEWS.length];
    void go(addressOf("access", { view: next?.id }));
  };
  useShortcuts([
    { keys: "[", what: "View before", group: "Access", run: () => step(-1) },
    { keys: "]", what: "Next view", group: "Access", run: () => step(1) },
  ]);
  return (
    <Page title="Access and audit">
      <nav class="segments views" aria-label="Views">
        {VIEWS.map(({ id, title }) => (
          <a
            key={id}
            class="segment"
            href={addressOf("access", { view: id })}
            aria-current={id === view.id ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <NobodyAsked />
      <view.content key={view.id} />
    </Page>
  );
}

/** Without authentication rights are only made ready. */
function NobodyAsked() {
  const known = identity.value;
  if (known.kind !== "known" || known.self.user !== undefined) {
    return null;
  }
  return (
    <section class="advice note">
      <Icon name="access" />
      <div>
        <p class="advice-title">Authentication is off</p>
        <p>
          Everybody may do everything. Users, roles and tokens can be made ready; they hold once the nodes run
          with <code>--auth required</code>.
        </p>
      </div>
    </section>
  );
}
