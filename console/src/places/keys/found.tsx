/** The entries of which something holds, page by page as they are scrolled to. Owns what was found so far. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { QuorateError } from "quorate";
import type { StoredEntry } from "../../api/entries.js";
import { asError } from "../../api/errors.js";
import { JsonText } from "../../api/json-text.js";
import { type Condition, findEntries } from "../../api/keys.js";
import { visible } from "../../json/format.js";
import { perform } from "../../state/page.js";
import { addressOf, go } from "../../state/route.js";
import { bytes, counted, grouped } from "../../text/words.js";
import { Icon } from "../../ui/icon.js";
import { KeyName } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Rows } from "../../ui/rows.js";
import { Empty } from "../../ui/states.js";

const PAGE_ENTRIES = 200;
const PREVIEW_LENGTH = 120;

interface Sofar {
  readonly entries: readonly StoredEntry[];
  readonly examined: number;
  readonly indexUsed: readonly string[];
  /** Where to go on; `null` before the first page, `undefined` at the end. */
  readonly cursor: string | null | undefined;
  readonly isReading: boolean;
  /** Somebody stopped it: it goes on only when told to. */
  readonly isStopped: boolean;
  readonly error: QuorateError | undefined;
}

const NOTHING: Sofar = {
  entries: [],
  examined: 0,
  indexUsed: [],
  cursor: null,
  isReading: false,
  isStopped: false,
  error: undefined,
};

/** What was found. */
export function Found({ prefix, where }: { readonly prefix: string; readonly where: readonly Condition[] }) {
  const [sofar, setSofar] = useState(NOTHING);
  const abort = useRef(new AbortController());
  const isBusy = useRef(false);

  const read = useCallback(
    async (before: Sofar) => {
      if (isBusy.current || before.cursor === undefined) {
        return;
      }
      isBusy.current = true;
      setSofar({ ...before, isReading: true, isStopped: false, error: undefined });
      setSofar(await next(before, prefix, where, abort.current.signal, setSofar));
      isBusy.current = false;
    },
    [prefix, where],
  );
  const stop = () => {
    abort.current.abort();
    abort.current = new AbortController();
  };
  useEffect(() => {
    void read(NOTHING);
    return () => abort.current.abort();
  }, []);

  const { entries, error, isReading, cursor } = sofar;
  const isPaused = !isReading && error === undefined && cursor !== undefined;
  return (
    <>
      <p class="hint keys-count" aria-live="polite">
        {counted(entries.length, "entry", "entries")} found{cursor === undefined ? "" : " so far"},{" "}
        {grouped(sofar.examined)} looked at,{" "}
        {sofar.indexUsed.length === 0 ? "no index used" : `index used: ${sofar.indexUsed.join(", ")}`}
        {isReading && (
          <button type="button" class="button quiet small" onClick={stop}>
            Stop
          </button>
        )}
        {isPaused && (
          <button type="button" class="button quiet small" onClick={() => void read(sofar)}>
            Look further
          </button>
        )}
      </p>
      {error !== undefined && <Problem error={error} onRetry={() => void read(sofar)} />}
      {entries.length > 0 && (
        <Rows
          label="Entries found"
          count={entries.length}
          render={(at) => <FoundRow entry={entries[at]} />}
          onOpen={(at) => void go(addressOf("entry", { key: entries[at]?.key ?? "" }))}
          onSeen={(_, last) => {
            if (last >= entries.length - 1 && isPaused && !sofar.isStopped) {
              void read(sofar);
            }
          }}
        />
      )}
      {entries.length === 0 && cursor === undefined && (
        <Empty title="Nothing matches">
          <p>All {grouped(sofar.examined)} entries with this prefix were looked at.</p>
        </Empty>
      )}
    </>
  );
}

/** A node looks at a bounded number of entries at a time, so a page may be empty. Asks until one has something, the end is reached, or somebody stops it. Tells how far it is meanwhile. */
async function next(
  before: Sofar,
  prefix: string,
  where: readonly Condition[],
  signal: AbortSignal,
  tell: (sofar: Sofar) => void,
): Promise<Sofar> {
  let sofar = before;
  try {
    do {
      const cursor = sofar.cursor ?? undefined;
      const page = await perform(findEntries({ prefix, where, limit: PAGE_ENTRIES, cursor }), signal);
      sofar = {
        entries: [...sofar.entries, ...page.entries],
        examined: sofar.examined + page.examined,
        indexUsed: page.indexUsed ?? [],
        cursor: page.cursor,
        isReading: true,
        isStopped: false,
        error: undefined,
      };
      tell(sofar);
    } while (sofar.cursor !== undefined && sofar.entries.length === before.entries.length);
    return { ...sofar, isReading: false };
  } catch (error) {
    const isStopped = signal.aborted;
    return { ...sofar, isReading: false, isStopped, error: isStopped ? undefined : asError(error) };
  }
}

function FoundRow({ entry }: { readonly entry: StoredEntry | undefined }) {
  if (entry === undefined) {
    return null;
  }
  const { value } = entry;
  return (
    <>
      <Icon name="entry" />
      <KeyName name={entry.key} />
      <bdi class="row-aside">
        {value instanceof JsonText
          ? visible(value.preview(PREVIEW_LENGTH))
          : `${bytes(value.length)} of bytes`}
      </bdi>
    </>
  );
}
