/** Prefixes to choose from: collections, and what the token may read. Owns what is said where collections may not be listed. */

import { listCollections } from "../../api/matching.js";
import { readablePrefixes } from "../../state/identity.js";
import { useRequest } from "../../state/page.js";
import { KeyName } from "../../ui/key-name.js";

const COLLECTIONS_MAX = 20;

/** What the choice takes. */
export interface PicksProps {
  readonly prefix: string;
  readonly onPick: (prefix: string) => void;
}

/** The choice. */
export function Picks({ prefix, onPick }: PicksProps) {
  const allowed = readablePrefixes().filter((prefix) => prefix !== "");
  const mayList = allowed.length === 0;
  // Whoever reads only below some prefixes is refused the list.
  const { data } = useRequest(mayList ? listCollections(COLLECTIONS_MAX) : undefined, String(mayList));
  const names = mayList ? (data?.collections ?? []).map(({ name }) => `${name}/`) : allowed;
  if (names.length === 0) {
    return null;
  }
  return (
    <div class="toolbar picks">
      <span class="hint">{mayList ? "Collections" : "You may read"}</span>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          class="button small"
          aria-pressed={name === prefix}
          onClick={() => onPick(name)}
        >
          <KeyName name={name} />
        </button>
      ))}
    </div>
  );
}
