/**
 * Changes of keys as they happen: watched, paused, cleared, and each with what it changed.
 *
 * Owns what is watched, which stands in the address, and what is shown of it while it is paused. What comes in meanwhile is kept.
 */

import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { made } from "../../api/connection.js";
import { JsonText } from "../../api/json-text.js";
import { type Watched, watchKeys } from "../../api/watch.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { noticeRefusal, readablePrefixes } from "../../state/identity.js";
import { perform } from "../../state/page.js";
import { route, setQuery } from "../../state/route.js";
import { counted, duration, grouped } from "../../text/words.js";
import { Icon } from "../../ui/icon.js";
import { KeyName } from "../../ui/key-name.js";
import { Page } from "../../ui/page.js";
import { Problem } from "../../ui/problem.js";
import { type Column, WithHead } from "../../ui/row-head.js";
import { Rows } from "../../ui/rows.js";
import { Empty } from "../../ui/states.js";
import { queryOf, type Wish, watchedOf, wishOf } from "./address.js";
import { ChangePanel, toneOf, whatOf } from "./change.js";
import { type ChangeLine, Follower, type Line } from "./follower.js";
import { WatchForm } from "./form.js";

/** So much of a value stands in a line. */
const PREVIEW = 160;

/** What the columns of the rows are. */
const COLUMNS: readonly Column[] = [
  ["col time", "Time"],
  ["col what", "Change"],
  ["col name", "Key"],
  ["row-aside wide-only", "Value"],
  ["col revision wide-only", "Revision"],
];

/** The place. */
export default function WatchPlace() {
  const { query } = route.value;
  const address = query.toString();
  const wish = wishOf(query);
  const watched = watchedOf(wish);
  const isNameless = wish.isKey && wish.text === "";
  const onWish = (wish: Wish) => setQuery(queryOf(wish), "push");
  return (
    <Page title="Live watch" isTall>
      <WatchForm key={address} wish={wish} onWish={onWish} />
      {typeof watched === "string" || isNameless ? (
        <Empty title="Nothing is watched">
          <p>{typeof watched === "string" ? `The address is not right: ${watched}.` : "Name a key."}</p>
        </Empty>
      ) : (
        <Watching
          key={address}
          watched={watched}
          onPrefix={(text) => onWish({ ...wish, isKey: false, text })}
        />
      )}
    </Page>
  );
}

/** Follows what is watched for as long as the component is there. */
function useFollower(watched: Watched, turn: number): Follower {
  const { target } = watchKeys(watched).http;
  const follower = useMemo(
    () =>
      new Follower((from, signal) => perform(watchKeys({ ...watched, from: from ?? watched.from }), signal)),
    [target, turn],
  );
  useEffect(() => {
    let last = made.peek()[0]?.number ?? 0;
    // The client goes over breaks without a word: what it tries stands among the calls that were made.
    const forget = made.subscribe(([call]) => {
      if (call !== undefined && call.number > last) {
        last = call.number;
        if (call.target.startsWith("/v1/watch?")) {
          follower.onTry(call.status === 200);
        }
      }
    });
    follower.start();
    return () => {
      forget();
      follower.stop();
    };
  }, [follower]);
  const course = follower.course.value;
  useEffect(() => {
    if (course.kind === "failed") {
      noticeRefusal(course.error);
    }
  }, [course]);
  return follower;
}

/** What is shown while it is paused: the lines as they were, the newest first. */
interface Pause {
  readonly lines: readonly Line[];
  readonly count: number;
}

interface WatchingProps {
  readonly watched: Watched;
  readonly onPrefix: (prefix: string) => void;
}

function Watching({ watched, onPrefix }: WatchingProps) {
  const [turn, setTurn] = useState(0);
  const follower = useFollower(watched, turn);
  const [pause, setPause] = useState<Pause | undefined>(undefined);
  const [open, setOpen] = useState<ChangeLine | undefined>(undefined);
  const [resumed, setResumed] = useState(0);
  // What is new is told by this; the lines themselves are no signal.
  follower.version.value;
  const course = follower.course.value;
  const hold = useCallback(
    () => setPause((pause) => pause ?? { lines: follower.lines.snapshot(), count: follower.count }),
    [follower],
  );
  const goOn = () => {
    setPause(undefined);
    setResumed(resumed + 1);
  };
  const clear = () => {
    follower.clear();
    setOpen(undefined);
    goOn();
  };
  const onSeen = useCallback((first: number) => first > 0 && hold(), [hold]);
  useShortcuts([
    { keys: "p", what: "Pause, or go on", group: "Live watch", run: () => (pause ? goOn() : hold()) },
    { keys: "C", what: "Clear", group: "Live watch", run: clear },
    { keys: "Escape", what: "Close the change", group: "Live watch", run: () => setOpen(undefined) },
  ]);
  const lineAt = (row: number) => (pause === undefined ? follower.lines.at(row) : pause.lines[row]);
  const length = pause?.lines.length ?? follower.lines.length;
  return (
    <>
      {course.kind === "failed" && (
        <>
          <Problem error={course.error} onRetry={() => setTurn(turn + 1)} />
          {course.error.code === "permission_denied" && <Allowed onPrefix={onPrefix} />}
        </>
      )}
      <div class="toolbar watch-bar">
        <Standing follower={follower} pause={pause} />
        <button
          type="button"
          class="button push"
          aria-pressed={pause !== undefined}
          onClick={pause ? goOn : hold}
        >
          {pause === undefined ? "Pause" : "Resume"}
        </button>
        <button type="button" class="button" onClick={clear}>
          Clear
        </button>
      </div>
      <div class={open === undefined ? "split" : "split open"}>
        {length === 0 ? (
          <Nothing isFailed={course.kind === "failed"} />
        ) : (
          <WithHead columns={COLUMNS}>
            <Rows
              key={resumed}
              label="Changes, the newest first"
              count={length}
              onSeen={onSeen}
              onOpen={(row) => {
                const line = lineAt(row);
                if (line?.kind === "change") {
                  // What somebody reads should not run away.
                  hold();
                  setOpen(line);
                }
              }}
              rowProps={(row) => ({ "data-open": open !== undefined && lineAt(row) === open })}
              render={(row) => {
                const line = lineAt(row);
                return line && (line.kind === "note" ? <Note line={line} /> : <Change line={line} />);
              }}
            />
          </WithHead>
        )}
        {open !== undefined && (
          <ChangePanel key={open.number} line={open} onClose={() => setOpen(undefined)} />
        )}
      </div>
    </>
  );
}

/** How it stands: the connection, how many came, how many are kept. */
function Standing({ follower, pause }: { readonly follower: Follower; readonly pause: Pause | undefined }) {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((tick) => tick + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  // A component that reads signals is drawn anew for those alone.
  follower.version.value;
  const course = follower.course.value;
  const { count } = follower;
  const { dropped, length } = follower.lines;
  const words = {
    opening: "Connecting",
    live: "Live",
    lost:
      course.kind === "lost"
        ? `Connection lost ${duration(Date.now() - course.since)} ago, trying again`
        : "",
    failed: "Stopped",
  }[course.kind];
  const tone = { opening: "", live: "good", lost: "warn", failed: "bad" }[course.kind];
  return (
    <p class="watch-standing">
      <span class={`dot ${tone}`} aria-hidden="true" />
      <strong aria-live="polite">{words}</strong>
      <span class="hint">
        {counted(count, "change")}, {rateOf(follower.perSecond())} a second
      </span>
      {dropped > 0 && (
        <span class="hint">
          the last {grouped(length)} kept, {grouped(dropped)} let go
        </span>
      )}
      {pause !== undefined && (
        <span class="badge" aria-live="polite">
          Paused{count > pause.count && `, ${grouped(count - pause.count)} new`}
        </span>
      )}
    </p>
  );
}

function rateOf(perSecond: number): string {
  return perSecond > 0 && perSecond < 10 ? perSecond.toFixed(1) : grouped(Math.round(perSecond));
}

function Nothing({ isFailed }: { readonly isFailed: boolean }) {
  return isFailed ? (
    <Empty title="Nothing was seen" />
  ) : (
    <Empty title="No change yet">
      <p>
        From now on each change shows here as it happens. To see what was before, name a revision to begin
        from.
      </p>
    </Empty>
  );
}

/** Where a token may read only below some prefixes: those. */
function Allowed({ onPrefix }: { readonly onPrefix: (prefix: string) => void }) {
  return (
    <div class="toolbar">
      {readablePrefixes().map((prefix) => (
        <button key={prefix} type="button" class="button small" onClick={() => onPrefix(prefix)}>
          Watch <KeyName name={prefix} />
        </button>
      ))}
    </div>
  );
}

function Note({ line }: { readonly line: Extract<Line, { kind: "note" }> }) {
  return (
    <span class={line.isLoss ? "note loss" : "note"} title={line.text}>
      <Icon name={line.isLoss ? "warning" : "reload"} />
      <span class="note-text">{line.text}</span>
    </span>
  );
}

function Change({ line }: { readonly line: ChangeLine }) {
  const { event, step, place } = line;
  return (
    <>
      <time class="col time" dateTime={new Date(line.at).toISOString()}>
        {timeOf(line.at)}
      </time>
      <span class="col what">
        <span class={toneOf(line)}>{whatOf(line)}</span>
      </span>
      <span class="col name">
        <KeyName name={event.key} />
        {step.size > 1 && (
          <span class="hint" title="Which of the changes that were made in one step">
            {place} of {step.size}
          </span>
        )}
      </span>
      <span class="row-aside wide-only">{previewOf(line)}</span>
      <span class="col revision wide-only" title="Revision">
        {event.revision}
      </span>
    </>
  );
}

function previewOf({ event }: ChangeLine): string {
  if (event.type === "delete") {
    return "";
  }
  const { value } = event.entry;
  return value instanceof JsonText ? value.preview(PREVIEW) : `${counted(value.length, "byte")}`;
}

/** `03:20:15.042` */
function timeOf(at: number): string {
  const time = new Date(at);
  const two = (number: number) => String(number).padStart(2, "0");
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(":");
  return `${clock}.${String(time.getMilliseconds()).padStart(3, "0")}`;
}
