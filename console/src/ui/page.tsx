/** The frame of a place: its title, what can be done, its content. Owns the title of the window. */

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

/** What a page takes. */
export interface PageProps {
  readonly title: string;
  /** In place of the plain title. */
  readonly heading?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** Fills the height of the window, and scrolls within. */
  readonly isTall?: boolean;
  readonly children: ComponentChildren;
}

/** A place. */
export function Page({ title, heading, actions, isTall = false, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Quorate`;
  }, [title]);
  return (
    <div class={isTall ? "page tall" : "page"}>
      <header class="page-head">
        <h1>{heading ?? title}</h1>
        {actions !== undefined && <div class="page-actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
