/** What the views of users, roles and tokens share: the list with its errors, a try that shows what went wrong, a form at the side. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { QuorateError } from "quorate";
import { asError } from "../../api/errors.js";
import { identity } from "../../state/identity.js";
import type { PagesSource } from "../../state/pages.js";
import { addressOf } from "../../state/route.js";
import { Dialog } from "../../ui/dialog.js";
import { Problem } from "../../ui/problem.js";
import { Empty, Loading } from "../../ui/states.js";
import { administers } from "./rights.js";

/** So many are read at once. */
export const PAGE_ITEMS = 200;

/** What a list takes. */
export interface AccessListProps<Item> {
  readonly what: string;
  readonly source: PagesSource<Item>;
  readonly empty: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A list, or why it is not there: who may not administer the cluster is told so. */
export function AccessList<Item>({ what, source, empty, children }: AccessListProps<Item>) {
  const { items, isThere, error, hasMore, isReading } = source;
  return (
    <>
      {error !== undefined && <Problem error={error} onRetry={source.reload} />}
      {error?.code === "permission_denied" && <OnlyAdministrators what={what} />}
      {!isThere && error === undefined && <Loading what={`the ${what}`} />}
      {isThere && items.length === 0 && <Empty title={`There are no ${what}`}>{empty}</Empty>}
      {items.length > 0 && <div class="table-box">{children}</div>}
      {hasMore && (
        <button type="button" class="button start" disabled={isReading} onClick={source.readOn}>
          Show more {what}
        </button>
      )}
    </>
  );
}

function OnlyAdministrators({ what }: { readonly what: string }) {
  return (
    <p>
      The {what} of the cluster are shown to those who administer it: their roles have the permission{" "}
      <code>admin</code> on everything. <a href={addressOf("access")}>See what you may yourself</a>.
    </p>
  );
}

/** Whether the cluster lets us administer it, as far as is known. */
export function isAdministrator(): boolean {
  const known = identity.value;
  return known.kind === "known" && administers(known.self.grants);
}

/** Tries something; what went wrong is to be shown where it was asked for. */
export function useAttempt(onDone: () => void): {
  readonly error: QuorateError | undefined;
  readonly isBusy: boolean;
  attempt(act: () => Promise<unknown>): Promise<void>;
} {
  const [error, setError] = useState<QuorateError | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const attempt = async (act: () => Promise<unknown>) => {
    setError(undefined);
    setBusy(true);
    try {
      await act();
      onDone();
    } catch (error) {
      setError(asError(error));
    }
    setBusy(false);
  };
  return { error, isBusy, attempt };
}

/** What a form takes. */
export interface AccessFormProps {
  readonly title: string;
  readonly action: string;
  /** Why it cannot be sent yet. */
  readonly missing: string | undefined;
  readonly error: QuorateError | undefined;
  readonly isBusy: boolean;
  readonly onSubmit: () => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A form in a window. */
export function AccessForm(props: AccessFormProps) {
  const { title, action, missing, error, isBusy, onSubmit, onClose, children } = props;
  const [isTried, setTried] = useState(false);
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form="access-form" class="button primary" disabled={isBusy}>
            {action}
          </button>
        </>
      }
    >
      <form
        id="access-form"
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setTried(true);
          if (missing === undefined) {
            onSubmit();
          }
        }}
      >
        {error !== undefined && <Problem error={error} />}
        {children}
        {isTried && missing !== undefined && (
          <p class="field-error" role="alert">
            {missing}
          </p>
        )}
      </form>
    </Dialog>
  );
}

/** A line of a form. */
export function Line(props: {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  readonly isFixed?: boolean;
  readonly onValue: (value: string) => void;
}) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <input
        class="mono"
        type="text"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        placeholder={props.placeholder}
        readOnly={props.isFixed}
        value={props.value}
        onInput={(event) => props.onValue(event.currentTarget.value)}
      />
    </label>
  );
}
