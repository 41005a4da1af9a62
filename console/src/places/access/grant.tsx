/** A grant in words. */

import type { Grant } from "quorate";
import { KeyName } from "../../ui/key-name.js";

/** The permission and the prefix. */
export function GrantText({ grant }: { readonly grant: Grant }) {
  return (
    <span class="grant">
      <span class="badge quiet">{grant.permission}</span>
      {grant.prefix === "" ? "everything" : <KeyName name={grant.prefix} />}
    </span>
  );
}

/** Grants, one below the other. */
export function Grants({ grants }: { readonly grants: readonly Grant[] }) {
  if (grants.length === 0) {
    return <span class="hint">nothing</span>;
  }
  return (
    <ul class="grants">
      {grants.map((grant) => (
        <li key={`${grant.permission} ${grant.prefix}`}>
          <GrantText grant={grant} />
        </li>
      ))}
    </ul>
  );
}
