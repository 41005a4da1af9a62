/** In which lines two texts differ, one below the other. Owns its form; the search is `text/diff`'s. */

import { useMemo, useState } from "preact/hooks";
import { type DiffLine, diffLines, type Fold, folded } from "../text/diff.js";
import { counted } from "../text/words.js";

/** More lines are not put into the page. */
const LINES_MAX = 4_000;
const SIGNS = { same: " ", removed: "−", added: "+", fold: "" } as const;

/** What a difference takes. */
export interface DifferenceProps {
  readonly label: string;
  readonly before: string;
  readonly after: string;
}

/** The difference of two texts. */
export function Difference({ label, before, after }: DifferenceProps) {
  const [isWhole, setWhole] = useState(false);
  const lines = useMemo(() => diffLines(before, after), [before, after]);
  const shown = isWhole ? lines : folded(lines);
  const isSame = lines.every((line) => line.kind === "same");
  return (
    <div class="difference">
      <header class="difference-head">
        <span>{isSame ? "No difference" : changesOf(lines)}</span>
        <button
          type="button"
          class="button quiet small"
          aria-pressed={isWhole}
          onClick={() => setWhole(!isWhole)}
        >
          {isWhole ? "Only what changed" : "All lines"}
        </button>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
      <section class="difference-lines" tabIndex={0} aria-label={`${label}, lines`}>
        {shown.slice(0, LINES_MAX).map((line, at) => (
          <Line key={at} line={line} />
        ))}
        {shown.length > LINES_MAX && (
          <div class="diff fold">… {counted(shown.length - LINES_MAX, "more line")}, not shown</div>
        )}
      </section>
    </div>
  );
}

function changesOf(lines: readonly DiffLine[]): string {
  const added = lines.filter((line) => line.kind === "added").length;
  const removed = lines.filter((line) => line.kind === "removed").length;
  return `${counted(added, "line")} added, ${counted(removed, "line")} removed`;
}

function Line({ line }: { readonly line: DiffLine | Fold }) {
  if (line.kind === "fold") {
    return <div class="diff fold">{counted(line.count, "line")} the same</div>;
  }
  return (
    <div class={`diff ${line.kind}`}>
      <span class="diff-number">{line.kind === "added" ? "" : line.before}</span>
      <span class="diff-number">{line.kind === "removed" ? "" : line.after}</span>
      <span class="diff-sign">{SIGNS[line.kind]}</span>
      <code>{line.text}</code>
    </div>
  );
}
