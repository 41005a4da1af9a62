/** What stands in place of content: it is being asked for, there is none, it could not be read. Owns which of them is shown when. */

import type { ComponentChildren } from "preact";
import type { Source } from "../state/page.js";
import { Problem } from "./problem.js";

/** Lines in place of what is being read. */
export function Loading({ lines = 4, what }: { readonly lines?: number; readonly what: string }) {
  return (
    <div class="loading" role="status" aria-label={`Reading ${what}`}>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} class="loading-line" />
      ))}
    </div>
  );
}

/** There is nothing, and what to do about it. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children !== undefined && <div class="empty-text">{children}</div>}
    </div>
  );
}

/** What {@link Shown} takes. */
export interface ShownProps<T> {
  /** What is read, for people. */
  readonly what: string;
  readonly source: Source<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** The answer of a request once it is there, and before that why it is not. An answer that is old is shown with the error above it. */
export function Shown<T>({ what, source, children }: ShownProps<T>) {
  const { data, error, isLoading, reload } = source;
  return (
    <>
      {error !== undefined && <Problem error={error} onRetry={reload} />}
      {data === undefined ? isLoading && <Loading what={what} /> : children(data)}
    </>
  );
}
