/**
 * A list of which only the rows that can be seen are in the page.
 *
 * Owns scrolling, the row that is chosen, and the keys that move it. Rows have one height. 100,000 of them cost as much as 40.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useShortcuts } from "../keyboard/keys.js";

/** The height of a row, as the style sheet has it. */
export const ROW_HEIGHT = 32;
/** So many rows beyond the edge are there already, so that a quick hand sees no gap. */
const BEYOND = 12;

/** What a list takes. */
export interface RowsProps {
  readonly label: string;
  readonly count: number;
  /** A list that opens and closes is a `tree`. */
  readonly role?: "listbox" | "tree";
  readonly rowProps?: (row: number) => Readonly<Record<string, string | number | boolean>>;
  readonly render: (row: number) => ComponentChildren;
  /** A row was chosen: Enter or a click. */
  readonly onOpen: (row: number) => void;
  /** Opens or closes a row of a tree: the right and left arrows. */
  readonly onExpand?: (row: number, isOpen: boolean) => void;
  /** These rows can be seen, or will be soon. */
  readonly onSeen?: (first: number, last: number) => void;
}

/** A list. */
export function Rows({
  label,
  count,
  role = "listbox",
  rowProps,
  render,
  onOpen,
  onExpand,
  onSeen,
}: RowsProps) {
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const [view, setView] = useState({ top: 0, height: 600 });
  const [active, setActive] = useState(0);
  const chosen = Math.min(active, Math.max(0, count - 1));

  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) {
      return;
    }
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);

  const first = Math.max(0, Math.floor(view.top / ROW_HEIGHT) - BEYOND);
  const end = Math.min(count, Math.ceil((view.top + view.height) / ROW_HEIGHT) + BEYOND);
  useEffect(() => onSeen?.(first, end - 1), [first, end, count, onSeen]);

  const move = (to: number) => {
    const next = Math.max(0, Math.min(count - 1, to));
    setActive(next);
    const element = box.current;
    if (element !== null) {
      const top = next * ROW_HEIGHT;
      element.scrollTop = Math.min(Math.max(element.scrollTop, top + ROW_HEIGHT - element.clientHeight), top);
      element.focus({ preventScroll: true });
    }
  };
  const page = Math.max(1, Math.floor(view.height / ROW_HEIGHT) - 1);
  const keys: Record<string, () => void> = {
    ArrowDown: () => move(chosen + 1),
    ArrowUp: () => move(chosen - 1),
    PageDown: () => move(chosen + page),
    PageUp: () => move(chosen - page),
    Home: () => move(0),
    End: () => move(count - 1),
    Enter: () => onOpen(chosen),
    ...(onExpand && {
      ArrowRight: () => onExpand(chosen, true),
      ArrowLeft: () => onExpand(chosen, false),
    }),
  };
  useShortcuts([
    { keys: "j", what: "Next row", group: "Lists", run: () => move(chosen + 1) },
    { keys: "k", what: "Row before", group: "Lists", run: () => move(chosen - 1) },
    { keys: "o", what: "Open the row", group: "Lists", run: () => onOpen(chosen) },
  ]);

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: its role is a property
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: its role is a property
    <div
      ref={box}
      class="rows"
      role={role}
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={count > 0 ? `${id}-${chosen}` : undefined}
      onKeyDown={(event) => {
        const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
        if (act !== undefined) {
          event.preventDefault();
          act();
        }
      }}
    >
      <div class="rows-all" role="presentation" style={{ height: `${count * ROW_HEIGHT}px` }}>
        {Array.from({ length: Math.max(0, end - first) }, (_, at) => {
          const row = first + at;
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list has the keys
            // biome-ignore lint/a11y/noStaticElementInteractions: its role is that of the list
            // biome-ignore lint/a11y/useAriaPropsSupportedByRole: its role is that of the list
            <div
              key={row}
              id={`${id}-${row}`}
              class={row === chosen ? "row active" : "row"}
              role={role === "tree" ? "treeitem" : "option"}
              aria-selected={row === chosen}
              aria-setsize={count}
              aria-posinset={row + 1}
              style={{ transform: `translateY(${row * ROW_HEIGHT}px)` }}
              onClick={() => {
                setActive(row);
                onOpen(row);
              }}
              {...rowProps?.(row)}
            >
              {render(row)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
