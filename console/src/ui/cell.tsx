/** A cell of a table that becomes a card on a narrow window. Owns the label that it has there. */

import type { ComponentChildren } from "preact";

/** What a cell takes. */
export interface CellProps {
  /** The heading of its column. */
  readonly label: string;
  /** Whether it is a number, and stands at the right. */
  readonly isNumber?: boolean;
  readonly class?: string;
  readonly children: ComponentChildren;
}

/** The cell. */
export function Cell({ label, isNumber = false, class: name = "", children }: CellProps) {
  return (
    <td data-label={label} class={isNumber ? `number ${name}` : name}>
      <div class="cell">{children}</div>
    </td>
  );
}
