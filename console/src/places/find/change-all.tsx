/**
 * Updates or deletes all entries that match.
 *
 * Owns the order of things: a dry run says how many and which, a question names what will happen, and only then it goes through the
 * parts, which can be stopped between two of them. Another patch wants another dry run.
 */

import { useState } from "preact/hooks";
import { JsonText } from "../../api/json-text.js";
import { findEntries } from "../../api/keys.js";
import { storedJson } from "../../json/format.js";
import { type JsonFault, scanJson } from "../../json/scan.js";
import { notify } from "../../state/notices.js";
import { perform, useRequest } from "../../state/page.js";
import { shownText } from "../../text/named.js";
import { counted, grouped } from "../../text/words.js";
import { confirm } from "../../ui/confirm.js";
import { Dialog } from "../../ui/dialog.js";
import { KeyName, Said } from "../../ui/key-name.js";
import { Problem } from "../../ui/problem.js";
import { Progress, useWork } from "../../ui/work.js";
import { clausesOf, type Sought, sentenceOf } from "./draft.js";
import { type Change, NOTHING, parts, type Sum } from "./parts.js";

/** So many keys are shown of those that match, and named in the question. */
const SHOWN = 50;
const NAMED = 5;

/** What is done to all. */
export type Verb = "update" | "delete";

/** What the dialog takes. */
export interface ChangeAllProps {
  readonly verb: Verb;
  readonly sought: Sought;
  readonly onClose: (isChanged: boolean) => void;
}

/** A dry run that came to its end, and what it was of. */
interface Tried {
  readonly change: Change;
  readonly sum: Sum;
}

/** The dialog. */
export function ChangeAll({ verb, sought, onClose }: ChangeAllProps) {
  const [patch, setPatch] = useState("{}");
  const [tried, setTried] = useState<Tried | undefined>(undefined);
  const [done, setDone] = useState<Sum | undefined>(undefined);
  const worker = useWork();
  const matching = { prefix: sought.prefix, where: clausesOf(sought) };
  const change = changeOf(verb, patch);
  const tryIt = async () => {
    if (typeof change === "string") {
      return;
    }
    setTried(undefined);
    let sum = NOTHING;
    const state = await worker.start(
      "Dry run",
      undefined,
      parts(matching, change, true, (now) => {
        sum = now;
      }),
    );
    if (state === "over") {
      worker.clear();
      setTried({ change, sum });
    }
  };
  const carryOut = async ({ change, sum }: Tried) => {
    const what = `${titleOf(verb)} ${counted(sum.applied, "entry", "entries")}`;
    if (!(await confirm(await questionOf(what, sought, change)))) {
      return;
    }
    setTried(undefined);
    let all = NOTHING;
    const ended = await worker.start(
      what,
      sum.applied,
      parts(matching, change, false, (now) => {
        all = now;
        setDone(now);
      }),
    );
    if (ended === "over") {
      notify(`${verb === "update" ? "Updated" : "Deleted"}: ${counted(all.applied, "entry", "entries")}`);
    }
  };
  const close = () => (worker.isBusy ? worker.stop() : onClose(done !== undefined));
  return (
    <Dialog
      title={`${titleOf(verb)} all that match`}
      at="right"
      onClose={close}
      footer={
        <>
          <button type="button" class="button" disabled={worker.isBusy} onClick={close}>
            {done === undefined ? "Cancel" : "Close"}
          </button>
          {tried === undefined ? (
            <button
              type="button"
              class="button primary"
              disabled={worker.isBusy || typeof change === "string" || done !== undefined}
              onClick={() => void tryIt()}
            >
              Dry run
            </button>
          ) : (
            <button
              type="button"
              class="button danger"
              disabled={tried.sum.applied === 0}
              onClick={() => void carryOut(tried)}
            >
              {titleOf(verb)} {counted(tried.sum.applied, "entry", "entries")} …
            </button>
          )}
        </>
      }
    >
      <p>
        <Said text={sentenceOf(sought)} />
      </p>
      {verb === "update" && (
        <PatchField
          text={patch}
          fault={typeof change === "string" ? change : undefined}
          isOff={worker.isBusy || done !== undefined}
          onText={(text) => {
            setPatch(text);
            setTried(undefined);
          }}
        />
      )}
      {tried === undefined && done === undefined && worker.work === undefined && (
        <p class="hint">First a dry run says how many entries it would be, and which. It changes nothing.</p>
      )}
      <Progress worker={worker} />
      {tried !== undefined && <Outcome verb={verb} sought={sought} sum={tried.sum} />}
    </Dialog>
  );
}

function titleOf(verb: Verb): string {
  return verb === "update" ? "Update" : "Delete";
}

/** The change, or why what was typed is none. */
function changeOf(verb: Verb, typed: string): Change | string {
  if (verb === "delete") {
    return { verb };
  }
  try {
    const tree = scanJson(typed);
    if (tree.kind !== "object" && tree.kind !== "array") {
      return "A patch is an object, or a list of steps.";
    }
    if ((tree.kind === "object" ? tree.members : tree.items).length === 0) {
      return "Say what is changed.";
    }
    return { verb, patch: new JsonText(storedJson(tree)) };
  } catch (fault) {
    const { line, column, message } = fault as JsonFault;
    return `Line ${line}, column ${column}: ${message}`;
  }
}

interface PatchFieldProps {
  readonly text: string;
  readonly fault: string | undefined;
  readonly isOff: boolean;
  readonly onText: (text: string) => void;
}

function PatchField({ text, fault, isOff, onText }: PatchFieldProps) {
  return (
    <label class="field">
      <span>Patch</span>
      <textarea
        class="mono"
        rows={6}
        spellcheck={false}
        dir="ltr"
        readOnly={isOff}
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {fault !== undefined && text !== "{}" && <span class="field-error">{fault}</span>}
      <small class="hint">
        Fields that it names are set, those named as <code>null</code> removed:{" "}
        <code>{'{"status": "late", "note": null}'}</code>. Or a list of steps:{" "}
        <code>{'[{"op": "inc", "path": "n", "value": 1}]'}</code>.
      </small>
    </label>
  );
}

interface OutcomeProps {
  readonly verb: Verb;
  readonly sought: Sought;
  readonly sum: Sum;
}

/** What the dry run says: how many, which, and which not. */
function Outcome({ verb, sought, sum }: OutcomeProps) {
  const { matched, applied, examined, failures } = sum;
  const which = useRequest(applied > 0 ? keysOf(sought, SHOWN) : undefined, "which");
  const keys = (which.data?.entries ?? []).map(({ key }) => key);
  return (
    <section class="block" aria-live="polite">
      <p class="headline-text">
        {applied === 0
          ? `No entry would be ${verb}d.`
          : `${counted(applied, "entry", "entries")} would be ${verb}d.`}
      </p>
      <p class="hint">
        {grouped(matched)} match, {grouped(examined)} were examined
        {failures.length > 0 && `, ${grouped(failures.length)} would be left as they are`}. Nothing was
        changed.
      </p>
      {which.error !== undefined && <Problem error={which.error} onRetry={which.reload} />}
      {keys.length > 0 && (
        <>
          <h3>Entries that match</h3>
          <ul class="which" aria-label="Entries that match">
            {keys.map((key) => (
              <li key={key}>
                <KeyName name={key} />
              </li>
            ))}
            {matched > keys.length && <li class="hint">and {counted(matched - keys.length, "more")}</li>}
          </ul>
        </>
      )}
      {failures.length > 0 && (
        <>
          <h3>Left as they are</h3>
          <ul class="which" aria-label="Entries that would be left as they are">
            {failures.slice(0, SHOWN).map(({ name, detail }) => (
              <li key={name}>
                <KeyName name={name} /> <span class="hint">{shownText(detail)}</span>
              </li>
            ))}
            {failures.length > SHOWN && <li class="hint">and {counted(failures.length - SHOWN, "more")}</li>}
          </ul>
        </>
      )}
    </section>
  );
}

function keysOf(sought: Sought, limit: number) {
  return findEntries({ prefix: sought.prefix, where: clausesOf(sought), keysOnly: true, limit });
}

/** The question before it is carried out: it names what is found now. */
async function questionOf(what: string, sought: Sought, change: Change) {
  const { entries, cursor } = await perform(keysOf(sought, NAMED));
  return {
    title: `${what}?`,
    body: (
      <>
        <p>
          {change.verb === "update" ? "This patch is applied to" : "Deleted are"}:{" "}
          <Said text={sentenceOf(sought)} />
        </p>
        {change.verb === "update" && <pre class="said">{change.patch.pretty}</pre>}
        <ul>
          {entries.map(({ key }) => (
            <li key={key}>
              <KeyName name={key} />
            </li>
          ))}
          {cursor !== undefined && <li>and others</li>}
        </ul>
        {sought.prefix === "" && sought.conditions.length === 0 && (
          <p>
            <strong>That is every entry of the cluster.</strong>
          </p>
        )}
        <p>
          It goes by what matches when each part is made, so entries that others write meanwhile may be among
          them.{" "}
          {change.verb === "delete"
            ? "The history of each keeps what it was, as long as it is not compacted."
            : "The history of each keeps what it was."}
        </p>
      </>
    ),
    action: what,
    isDangerous: true,
  };
}
