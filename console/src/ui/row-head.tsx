/** Headings over a list of rows with columns. Owns nothing but their frame: each has the class of its column, and so its width. */

import type { ComponentChildren } from "preact";

/** A column: the classes that its cells have, and what is in them. */
export type Column = readonly [classes: string, title: string];

/** A list, and what its columns are. For eyes only: to others each row is read as one text, whose words say what they are. */
export function WithHead({
  columns,
  children,
}: {
  readonly columns: readonly Column[];
  readonly children: ComponentChildren;
}) {
  return (
    <div class="list-side">
      <div class="row-head" aria-hidden="true">
        {columns.map(([classes, title]) => (
          <span key={title} class={classes}>
            {title}
          </span>
        ))}
      </div>
      {children}
    </div>
  );
}
