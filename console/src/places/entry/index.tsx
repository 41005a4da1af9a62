/**
 * One entry: read, edited as JSON, saved on the cas that was read, deleted.
 *
 * Owns the course of an edit. A save never overwrites what somebody else wrote meanwhile: it is refused then, and both versions are
 * shown.
 */

import { useEffect, useState } from "preact/hooks";
import { isQuorateError, type QuorateError } from "quorate";
import { readEntry, removeEntry, type StoredEntry } from "../../api/entries.js";
import { asError } from "../../api/errors.js";
import { JsonText } from "../../api/json-text.js";
import { visible } from "../../json/format.js";
import { type Json, JsonFault } from "../../json/scan.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { notify } from "../../state/notices.js";
import { perform, useRequest } from "../../state/page.js";
import { addressOf, go, guardLeaving, route } from "../../state/route.js";
import { isReadOnly } from "../../state/settings.js";
import { nameIn, shownName } from "../../text/named.js";
import { bytes } from "../../text/words.js";
import { confirm } from "../../ui/confirm.js";
import { Editor } from "../../ui/editor.js";
import { KeyHeading, KeyTabs, NoKeyNamed } from "../../ui/key-heading.js";
import { KeyName } from "../../ui/key-name.js";
import { Page } from "../../ui/page.js";
import { Problem } from "../../ui/problem.js";
import { Loading } from "../../ui/states.js";
import { Bytes } from "./bytes.js";
import { Conflict } from "./conflict.js";
import {
  buttonsOf,
  checked,
  type Doing,
  type Draft,
  draftOf,
  editable,
  faultOfLife,
  isChanged,
  saveOf,
  storeOf,
} from "./draft.js";
import { Facts } from "./facts.js";
import { download, Upload } from "./file.js";
import { useNewer } from "./follow.js";
import { LifeField } from "./lifetime.js";

/** Errors that say that the entry is not the version that was read. */
const OVERTAKEN = ["cas_mismatch", "already_exists", "not_found"] as const;
/** After the last key, before the text is looked at. */
const CHECK_PAUSE_MS = 250;

/** The place. */
export default function EntryPlace() {
  const key = nameIn(route.value.query, "key") ?? "";
  return (
    <Page
      title={key === "" ? "Entry" : shownName(key)}
      heading={key === "" ? "Entry" : <KeyHeading name={key} />}
      actions={key === "" ? undefined : <KeyTabs name={key} current="entry" />}
      isTall
    >
      {key === "" ? <NoKeyNamed /> : <OneEntry key={key} name={key} />}
    </Page>
  );
}

function OneEntry({ name }: { readonly name: string }) {
  const source = useRequest(readEntry(name), name);
  const [loaded, setLoaded] = useState<{ entry: StoredEntry | undefined; at: number } | undefined>(undefined);
  const { data, error, isLoading, reload } = source;
  useEffect(() => {
    if (!isLoading && error === undefined) {
      setLoaded({ entry: data, at: performance.now() });
    }
  }, [data, isLoading, error]);
  if (error !== undefined && loaded === undefined) {
    return <Problem error={error} onRetry={reload} />;
  }
  return loaded === undefined ? (
    <Loading what="the entry" lines={8} />
  ) : (
    <Editing key={loaded.at} name={name} entry={loaded.entry} reload={reload} />
  );
}

interface EditingProps {
  readonly name: string;
  readonly entry: StoredEntry | undefined;
  readonly reload: () => void;
}

/** A save that was refused: the document of the editor, and what is there. */
interface Overtaken {
  readonly mine: Json;
  readonly theirs: StoredEntry | undefined;
}

function Editing({ name, entry, reload }: EditingProps) {
  const [draft, setDraft] = useState<Draft>(() => draftOf(entry));
  const [fault, setFault] = useState<JsonFault | undefined>(undefined);
  const [error, setError] = useState<QuorateError | undefined>(undefined);
  const [overtaken, setOvertaken] = useState<Overtaken | undefined>(undefined);
  const [doing, setDoing] = useState<Doing | undefined>(undefined);
  const newer = useNewer(name, draft.base?.cas);
  const changed = isChanged(draft);

  useEffect(() => (changed ? guardLeaving(askToLeave) : undefined), [changed]);
  useEffect(() => {
    const timer = setTimeout(() => {
      const value = changed ? checked(draft.text) : undefined;
      setFault(value instanceof JsonFault ? value : undefined);
    }, CHECK_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [draft.text, changed]);
  useEffect(() => {
    if (newer !== undefined && !changed) {
      setDraft(draftOf(newer ?? undefined));
    }
  }, [newer, changed]);

  const attempt = async (what: Doing, act: () => Promise<void>) => {
    setDoing(what);
    setError(undefined);
    try {
      await act();
    } catch (error) {
      setError(asError(error));
    }
    setDoing(undefined);
  };
  const save = () => {
    const value = checked(draft.text);
    if (value instanceof JsonFault) {
      setFault(value);
      return;
    }
    void attempt("save", async () => {
      const refused = await saved(name, draft, value);
      setOvertaken(refused);
      if (refused === undefined) {
        reload();
      }
    });
  };
  const remove = async () => {
    const { base } = draft;
    const cas = base?.cas;
    if (base !== undefined && typeof cas === "string" && (await isToBeDeleted(name, base))) {
      await attempt("delete", () => removed(name, cas));
    }
  };
  const upload = async (file: File) => {
    const value = new Uint8Array(await file.arrayBuffer());
    if (draft.base === undefined || (await isToBeReplaced(name, draft.base, file))) {
      await attempt("save", async () => {
        const result = await perform(storeOf(name, draft, value));
        notify(`Saved: ${shownName(name)}, ${bytes(value.length)}, revision ${result.revision}`);
        reload();
      });
    }
  };
  const format = () => {
    const value = checked(draft.text);
    setFault(value instanceof JsonFault ? value : undefined);
    if (!(value instanceof JsonFault)) {
      setDraft({ ...draft, text: editable(value) });
    }
  };
  const discard = () => setDraft({ ...draft, text: draftOf(draft.base).text });
  // A mistake is shown a moment after it was made, or mended. To save looks at the text as it is.
  const isFree = doing === undefined && !isReadOnly.value && draft.base?.cas !== null;
  const canTry = changed && isFree && faultOfLife(draft.life) === undefined;
  useShortcuts([
    { keys: "mod+s", what: "Save", group: "Entry", run: () => canTry && save() },
    { keys: "r", what: "Read again", group: "Entry", run: () => !changed && reload() },
    { keys: "h", what: "History", group: "Entry", run: () => void go(addressOf("history", { key: name })) },
  ]);

  if (overtaken !== undefined) {
    return (
      <Conflict
        base={draft.base}
        mine={overtaken.mine}
        theirs={overtaken.theirs}
        onResolve={(text) => {
          setDraft({ ...draftOf(overtaken.theirs), text });
          setOvertaken(undefined);
        }}
        onDiscard={() => {
          setDraft(draftOf(overtaken.theirs));
          setOvertaken(undefined);
        }}
      />
    );
  }
  const { base } = draft;
  return (
    <>
      {error !== undefined && <Problem error={error} />}
      {base === undefined && (
        <p class="hint">
          There is no entry with this key. What you write here creates it, if nobody else does so before.
        </p>
      )}
      {newer !== undefined && changed && (
        <p class="banner inline" role="status">
          {newer === null ? "Somebody deleted it" : `Somebody changed it: it is at version ${newer.version}`}{" "}
          while you edit. Saving will show both versions.
        </p>
      )}
      <div class="entry">
        <div class="entry-main">
          {base?.value instanceof Uint8Array ? (
            <Bytes value={base.value} />
          ) : (
            <Editor
              label={`Value of ${shownName(name)}, as JSON`}
              text={draft.text}
              onText={(text) => setDraft({ ...draft, text })}
              isReadOnly={isReadOnly.value}
              fault={fault}
              onSave={() => canTry && save()}
            />
          )}
          <Tools
            draft={draft}
            doing={doing}
            canSave={canTry && fault === undefined}
            onSave={save}
            onFormat={format}
            onDiscard={discard}
            onRemove={() => void remove()}
          />
          <Beside
            draft={draft}
            isFree={isFree}
            onLife={(life) => setDraft({ ...draft, life })}
            onFile={(file) => void upload(file)}
          />
        </div>
        {base !== undefined && (
          <Facts entry={base} whyNot={whyNotTouched(base, changed)} onChanged={reload} />
        )}
      </div>
    </>
  );
}

interface BesideProps {
  readonly draft: Draft;
  readonly isFree: boolean;
  readonly onLife: (life: string) => void;
  readonly onFile: (file: File) => void;
}

/** What a new entry is made of beside a document, and what bytes are replaced by. */
function Beside({ draft, isFree, onLife, onFile }: BesideProps) {
  const { base, life } = draft;
  if (base === undefined) {
    const isOff = !isFree || isChanged(draft) || faultOfLife(life) !== undefined;
    return (
      <>
        <LifeField life={life} onLife={onLife} otherwise="for ever, or what its collection says" />
        <Upload label="Or take the bytes of a file" isOff={isOff} onFile={onFile} />
      </>
    );
  }
  return base.value instanceof Uint8Array ? (
    <Upload label="Replace it by the bytes of a file" isOff={!isFree} onFile={onFile} />
  ) : null;
}

interface ToolsProps {
  readonly draft: Draft;
  readonly doing: Doing | undefined;
  readonly canSave: boolean;
  readonly onSave: () => void;
  readonly onFormat: () => void;
  readonly onDiscard: () => void;
  readonly onRemove: () => void;
}

/** What can be done with the entry. Bytes are not edited. */
function Tools({ draft, doing, canSave, onSave, onFormat, onDiscard, onRemove }: ToolsProps) {
  const { base } = draft;
  const isBytes = base?.value instanceof Uint8Array;
  const changed = isChanged(draft);
  const buttons = buttonsOf(doing, base === undefined);
  return (
    <>
      <div class="toolbar">
        {!isBytes && (
          <>
            <button type="button" class="button primary" disabled={!canSave} onClick={onSave}>
              {buttons.save}
            </button>
            <button type="button" class="button" disabled={isReadOnly.value} onClick={onFormat}>
              Format
            </button>
            <button type="button" class="button" disabled={!changed} onClick={onDiscard}>
              Discard changes
            </button>
          </>
        )}
        {base !== undefined && (
          <button type="button" class="button push" onClick={() => download(base.key, base.value)}>
            Download
          </button>
        )}
        {base !== undefined && (
          <button
            type="button"
            class="button danger-text"
            disabled={doing !== undefined || isReadOnly.value || base.cas === null}
            onClick={onRemove}
          >
            {buttons.delete}
          </button>
        )}
      </div>
      {!isBytes && <p class="hint">{whyNot(base, changed)}</p>}
    </>
  );
}

function whyNot(base: StoredEntry | undefined, changed: boolean): string {
  if (isReadOnly.value) {
    return "The console is switched to reading only.";
  }
  if (base?.cas === null) {
    return "Somebody has it locked: only who has the key of the lock can write it until that ends.";
  }
  if (base === undefined) {
    return "It is created only if there is still no such entry.";
  }
  return changed
    ? `Saved only if it still has cas ${base.cas}. Its session and the time it has left stay.`
    : "Changes of others show here by themselves.";
}

/** Why the time to live cannot be set now: the entry is read again after that. */
function whyNotTouched(base: StoredEntry, changed: boolean): string | undefined {
  if (isReadOnly.value || base.cas === null) {
    return whyNot(base, changed);
  }
  return changed ? "Save your changes first, or discard them." : undefined;
}

function askToLeave(): Promise<boolean> {
  return confirm({
    title: "Leave without saving?",
    body: <p>What you changed is not saved, and is lost when you leave.</p>,
    action: "Leave without saving",
    isDangerous: true,
  });
}

/** Saves. What is there instead, where somebody else was faster. */
async function saved(name: string, draft: Draft, value: Json): Promise<Overtaken | undefined> {
  try {
    const result = await perform(saveOf(name, draft, value));
    notify(`Saved: ${shownName(name)}, version ${result.version ?? "?"}, revision ${result.revision}`);
    return undefined;
  } catch (error) {
    if (!isQuorateError(error, ...OVERTAKEN)) {
      throw error;
    }
    const shown = error.current as StoredEntry | undefined;
    // A refusal leaves out what is too large for it.
    const isWhole = shown?.value instanceof JsonText || shown?.value instanceof Uint8Array;
    return { mine: value, theirs: isWhole ? shown : await perform(readEntry(name)) };
  }
}

/** Asks whether the version that is shown is to be deleted. */
function isToBeDeleted(name: string, base: StoredEntry): Promise<boolean> {
  return confirm({
    title: "Delete this entry?",
    body: (
      <>
        <p>
          <KeyName name={name} /> is deleted, in version {base.version} (cas {base.cas}). If somebody changes
          it before that, nothing is deleted.
        </p>
        <p>Its history can be read, and any version restored, until it is compacted.</p>
      </>
    ),
    action: "Delete the entry",
    isDangerous: true,
  });
}

/** Asks whether the version that is shown is to be replaced by a file. */
function isToBeReplaced(name: string, base: StoredEntry, file: File): Promise<boolean> {
  return confirm({
    title: "Replace this entry?",
    body: (
      <p>
        <KeyName name={name} />, in version {base.version} (cas {base.cas}), is replaced by the{" "}
        {bytes(file.size)} of <bdi>{visible(file.name)}</bdi>. If somebody changes it before that, nothing is
        written. Its session and the time it has left stay.
      </p>
    ),
    action: "Replace the entry",
  });
}

/** Deletes the version with this cas. */
async function removed(name: string, cas: string): Promise<void> {
  const result = await perform(removeEntry(name, cas));
  notify(`Deleted: ${shownName(name)}, revision ${result.revision}`);
}
