/** The tree of keys on the page. Owns which row opens what, and that the next keys are read before the last ones are seen. */

import { useCallback, useEffect, useMemo } from "preact/hooks";
import { listKeys } from "../../api/keys.js";
import { perform } from "../../state/page.js";
import { addressOf, go } from "../../state/route.js";
import { shownText } from "../../text/named.js";
import { Icon } from "../../ui/icon.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Rows } from "../../ui/rows.js";
import { Empty, Loading } from "../../ui/states.js";
import { aboutOf, levelOf } from "./level.js";
import { type ReadLevel, type Row, Tree } from "./tree.js";

/** Keys of a page: the most that a node gives. */
const PAGE_KEYS = 1_000;
/** Deeper than this the indentation does not grow. */
const DEPTH_SHOWN_MAX = 12;

/** Reads a page of a level from the cluster. */
function reader(delimiter: string): ReadLevel {
  return async (prefix, from, signal) => {
    const page = await perform(listKeys({ prefix, from, limit: PAGE_KEYS }), signal);
    return levelOf(prefix, delimiter, { entries: page.entries, hasMore: page.cursor !== undefined });
  };
}

/** The tree. */
export function TreeView({ prefix, delimiter }: { readonly prefix: string; readonly delimiter: string }) {
  const tree = useMemo(() => new Tree(prefix, reader(delimiter)), [prefix, delimiter]);
  useEffect(() => {
    void tree.start();
    return () => tree.stop();
  }, [tree]);
  const rows = tree.rows.value;
  const onSeen = useCallback(
    (first: number, last: number) => {
      for (const row of tree.rows.peek().slice(first, last + 1)) {
        if (row.kind === "more") {
          void tree.more(row.prefix);
        }
      }
    },
    [tree],
  );

  if (rows.length === 0) {
    return tree.isReading.value ? <Loading what="keys" lines={8} /> : <NoKeys prefix={prefix} />;
  }
  const [only] = rows;
  if (rows.length === 1 && only?.kind === "error") {
    return <Problem error={only.error} onRetry={() => void tree.more(prefix)} />;
  }
  return (
    <Rows
      label="Keys"
      role="tree"
      count={rows.length}
      rowProps={(at) => ariaOf(rows[at])}
      render={(at) => <TreeRow row={rows[at]} />}
      onOpen={(at) => open(tree, rows[at])}
      onExpand={(at, isOpen) => expand(tree, rows[at], isOpen)}
      onSeen={onSeen}
    />
  );
}

function ariaOf(row: Row | undefined): Record<string, string | number | boolean> {
  const level = { "aria-level": (row?.depth ?? 0) + 1 };
  return row?.kind === "node" && row.node.kind === "part" ? { ...level, "aria-expanded": row.isOpen } : level;
}

function open(tree: Tree, row: Row | undefined): void {
  if (row?.kind === "node" && row.node.kind === "entry") {
    void go(addressOf("entry", { key: row.node.key }));
  } else if (row?.kind === "node") {
    expand(tree, row, !row.isOpen);
  } else if (row !== undefined) {
    void tree.more(row.prefix);
  }
}

function expand(tree: Tree, row: Row | undefined, isOpen: boolean): void {
  if (row?.kind !== "node" || row.node.kind !== "part") {
    return;
  }
  if (isOpen) {
    void tree.open(row.node.key);
  } else {
    tree.close(row.node.key);
  }
}

function TreeRow({ row }: { readonly row: Row | undefined }) {
  if (row === undefined) {
    return null;
  }
  const indent = { paddingLeft: `${Math.min(row.depth, DEPTH_SHOWN_MAX) * 18}px` };
  if (row.kind === "error") {
    return (
      <span class="field-error" style={indent}>
        {shownText(row.error.detail)} Enter tries again.
      </span>
    );
  }
  if (row.kind === "more") {
    return (
      <span class="hint" style={indent}>
        Reading more …
      </span>
    );
  }
  const { entry } = row.node;
  const isPart = row.node.kind === "part";
  return (
    <>
      <span class="tree-indent" style={indent}>
        {isPart ? <Icon name={row.isOpen ? "down" : "right"} /> : <Icon name="entry" />}
      </span>
      <KeyName name={row.node.name} />
      {isPart && <PartLink prefix={row.node.key} />}
      {entry !== undefined && <span class="row-aside wide-only">{aboutOf(entry)}</span>}
    </>
  );
}

/** Shows a part by itself. */
function PartLink({ prefix }: { readonly prefix: string }) {
  return (
    <a
      class="row-aside row-link"
      href={addressOf("keys", { prefix })}
      tabIndex={-1}
      onClick={(event) => event.stopPropagation()}
    >
      only these
    </a>
  );
}

function NoKeys({ prefix }: { readonly prefix: string }) {
  return (
    <Empty title={prefix === "" ? "There are no entries yet" : "No key begins so"}>
      {prefix === "" ? (
        <p>
          <code>
            quorate put orders/o1 '{"{"}"status":"new"{"}"}'
          </code>{" "}
          makes the first one, or the button above does.
        </p>
      ) : (
        <p>
          <KeyName name={prefix} /> is compared byte by byte, capitals and all.
        </p>
      )}
    </Empty>
  );
}
