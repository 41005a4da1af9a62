/** The collections: the rules of each, its indexes and how they are. Owns the table. They are declared by programs and the command line. */

import type { CollectionInfo } from "quorate";
import { listCollections } from "../../api/matching.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { usePages } from "../../state/pages.js";
import { addressOf } from "../../state/route.js";
import { counted, duration, grouped } from "../../text/words.js";
import { Cell } from "../../ui/cell.js";
import { Icon } from "../../ui/icon.js";
import { KeyName } from "../../ui/key-name.js";
import { Page } from "../../ui/page.js";
import { Problem } from "../../ui/problem.js";
import { Empty, Loading } from "../../ui/states.js";
import { rulesOf } from "./rules.js";

/** So many are read at once. */
const PAGE_ITEMS = 200;
/** How often it looks again: an index that is built gets ready. */
const LOOK_EVERY_MS = 2_000;

/** The place. */
export default function CollectionsPlace() {
  const source = usePages("collections", {
    request: (cursor) => listCollections(PAGE_ITEMS, cursor),
    items: (page) => page.collections,
    everyMs: LOOK_EVERY_MS,
  });
  const { items, isThere, error, hasMore, isReading, readOn, reload } = source;
  useShortcuts([{ keys: "r", what: "Refresh", group: "Collections", run: reload }]);
  return (
    <Page
      title="Collections"
      actions={
        <button type="button" class="button" onClick={reload}>
          <Icon name="reload" />
          <span>Refresh</span>
        </button>
      }
    >
      {error !== undefined && <Problem error={error} onRetry={reload} />}
      {!isThere && error === undefined && <Loading what="the collections" />}
      {isThere && items.length === 0 && (
        <Empty title="There are no collections">
          <p>
            A collection has rules for the documents below its name and a slash:{" "}
            <code>quorate collection set orders '{'{"indexes":[["status"]]}'}'</code> declares one.
          </p>
        </Empty>
      )}
      {items.length > 0 && <Table collections={items} />}
      {hasMore && (
        <button type="button" class="button start" disabled={isReading} onClick={readOn}>
          Show more collections
        </button>
      )}
    </Page>
  );
}

function Table({ collections }: { readonly collections: readonly CollectionInfo[] }) {
  return (
    <div class="table-box">
      <table class="table stacked">
        <thead>
          <tr>
            <th>Collection</th>
            <th>Rules</th>
            <th>Indexes</th>
            <th>Time to live</th>
            <th class="number">Declared at</th>
            <th>
              <span class="unseen">Ways on</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {collections.map((collection) => (
            <tr key={collection.name}>
              <Cell label="Collection">
                <strong>
                  <KeyName name={collection.name} />
                </strong>
              </Cell>
              <Cell label="Rules" class="wrap">
                <Rules collection={collection} />
              </Cell>
              <Cell label="Indexes" class="wrap">
                <Indexes collection={collection} />
              </Cell>
              <Cell label="Time to live">
                {collection.rules.ttlMs === undefined ? "for ever" : duration(collection.rules.ttlMs)}
              </Cell>
              <Cell label="Declared at" isNumber>
                {`revision ${grouped(collection.modRevision)}`}
              </Cell>
              <Cell label="" class="row-actions">
                <a class="button small" href={addressOf("keys", { prefix: `${collection.name}/` })}>
                  Keys
                </a>
                <a class="button small" href={addressOf("find", { prefix: `${collection.name}/` })}>
                  Find
                </a>
              </Cell>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Rules({ collection }: { readonly collection: CollectionInfo }) {
  const rules = rulesOf(collection);
  return rules.length === 0 ? (
    <>none</>
  ) : (
    <ul class="plain">
      {rules.map(({ field, words }) => (
        <li key={field ?? words}>
          {field !== undefined && (
            <>
              <KeyName name={field} />:{" "}
            </>
          )}
          {words}
        </li>
      ))}
    </ul>
  );
}

function Indexes({ collection: { indexes } }: { readonly collection: CollectionInfo }) {
  return indexes.length === 0 ? (
    <>none</>
  ) : (
    <ul class="plain" aria-label={counted(indexes.length, "index", "indexes")}>
      {indexes.map(({ fields, unique, state, detail }) => (
        <li key={fields.join("\n")}>
          <KeyName name={fields.join(", ")} /> {unique && <span class="badge">unique</span>}{" "}
          {state !== "ready" && (
            <span class={state === "failed" ? "badge bad" : "badge"} title={detail}>
              {state}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
