/** Icons, drawn on a grid of 20. Owns their lines. They are never the only way in which something is said. */

const PATHS = {
  cluster: "M10 3v4M10 13v4M6.2 12 4 15.5M13.8 12l2.2 3.5M10 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6Z",
  keys: "M4 4h5M4 4v12M4 10h5M4 16h5M12 4h4M12 10h4M12 16h4",
  entry: "M6 3h6l3 3v11H6zM12 3v3h3M8.5 10h4M8.5 13h4",
  history: "M4 10a6 6 0 1 1 2 4.5M4 10l-1.5-1.5M4 10l1.6-1.4M10 7v3.5l2.2 1.4",
  watch: "M2.5 10S5.5 5 10 5s7.5 5 7.5 5-3 5-7.5 5-7.5-5-7.5-5ZM10 8a2 2 0 1 0 0 4 2 2 0 0 0 0-4Z",
  lock: "M5 9h10v7H5zM7 9V6.5a3 3 0 0 1 6 0V9",
  session: "M3 10h3l2-5 4 10 2-5h3",
  task: "M4 5.5 5.5 7 8 4M4 13.5 5.5 15 8 12M11 5.5h5M11 13.5h5",
  find: "M9 4a5 5 0 1 0 0 10A5 5 0 0 0 9 4ZM12.8 12.8 16.5 16.5",
  collection: "M4 7.5h12V16H4zM5.5 5h9M7 2.5h6",
  access: "M10 4a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5ZM4.5 16c.6-3 2.7-4.5 5.5-4.5s4.9 1.5 5.5 4.5",
  callers: "M4 16V9M8 16V4M12 16v-5M16 16V7",
  menu: "M3 6h14M3 10h14M3 14h14",
  code: "M7 6 3 10l4 4M13 6l4 4-4 4",
  copy: "M7 7h9v9H7zM4 13V4h9",
  close: "M5 5l10 10M15 5 5 15",
  down: "M6 8l4 4 4-4",
  right: "M8 6l4 4-4 4",
  reload: "M16 10a6 6 0 1 1-1.8-4.3M16 3v3.5h-3.5",
  warning: "M10 3.5 17.5 16h-15zM10 8v4M10 14v.2",
  theme: "M10 3.5a6.5 6.5 0 1 0 0 13zM10 3.5v13M10 3.5a6.5 6.5 0 0 1 0 13",
  plus: "M10 4v12M4 10h12",
  palette: "M4 5h12v10H4zM6.5 8l2 2-2 2M10.5 12h3",
} as const;

/** The name of an icon. */
export type IconName = keyof typeof PATHS;

/** An icon. Says nothing to a screen reader. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
