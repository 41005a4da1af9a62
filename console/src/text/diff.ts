/**
 * In which lines two texts differ.
 *
 * Owns the search for the shortest list of changes (Myers), bounded so that two large texts that have nothing in common do not hold up
 * the page, and the folding of what stayed the same.
 */

/** A line of a difference, with its number in the text that it is of. */
export type DiffLine =
  | { readonly kind: "same"; readonly text: string; readonly before: number; readonly after: number }
  | { readonly kind: "removed"; readonly text: string; readonly before: number }
  | { readonly kind: "added"; readonly text: string; readonly after: number };

/** Lines that are the same on both sides, folded away. */
export interface Fold {
  readonly kind: "fold";
  readonly count: number;
}

/** More changes than this are not looked for: the middle is shown as removed and added then. */
const CHANGES_MAX = 2_000;

/** The lines of both texts, in order. */
export function diffLines(before: string, after: string): DiffLine[] {
  const old = before.split("\n");
  const young = after.split("\n");
  let head = 0;
  while (head < old.length && head < young.length && old[head] === young[head]) {
    head += 1;
  }
  let tail = 0;
  while (tail < Math.min(old.length, young.length) - head && old.at(-1 - tail) === young.at(-1 - tail)) {
    tail += 1;
  }
  const steps = changes(old.slice(head, old.length - tail), young.slice(head, young.length - tail));
  const all: Step[] = [...Array<Step>(head).fill("same"), ...steps, ...Array<Step>(tail).fill("same")];
  return numbered(all, old, young);
}

type Step = "same" | "removed" | "added";

function numbered(steps: readonly Step[], old: readonly string[], young: readonly string[]): DiffLine[] {
  let before = 0;
  let after = 0;
  return steps.map((kind) => {
    if (kind === "removed") {
      before += 1;
      return { kind, text: old[before - 1] ?? "", before };
    }
    after += 1;
    const text = young[after - 1] ?? "";
    if (kind === "added") {
      return { kind, text, after };
    }
    before += 1;
    return { kind, text, before, after };
  });
}

/** Myers' greedy search: for each number of changes, how far down each diagonal one comes. */
function changes(old: readonly string[], young: readonly string[]): Step[] {
  const bound = Math.min(old.length + young.length, CHANGES_MAX);
  let reach = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let count = 0; count <= bound; count += 1) {
    trace.push(new Map(reach));
    for (let diagonal = -count; diagonal <= count; diagonal += 2) {
      let x = step(reach, diagonal, count);
      while (x < old.length && x - diagonal < young.length && old[x] === young[x - diagonal]) {
        x += 1;
      }
      reach.set(diagonal, x);
      if (x >= old.length && x - diagonal >= young.length) {
        return back(trace, old.length, young.length);
      }
    }
    reach = new Map(reach);
  }
  return [...Array<Step>(old.length).fill("removed"), ...Array<Step>(young.length).fill("added")];
}

/** Whether the way to this diagonal comes from the one above: by an added line. */
function comesDown(reach: ReadonlyMap<number, number>, diagonal: number, count: number): boolean {
  const above = reach.get(diagonal + 1) ?? -1;
  const left = reach.get(diagonal - 1) ?? -1;
  return diagonal === -count || (diagonal !== count && left < above);
}

function step(reach: ReadonlyMap<number, number>, diagonal: number, count: number): number {
  return comesDown(reach, diagonal, count)
    ? (reach.get(diagonal + 1) ?? 0)
    : (reach.get(diagonal - 1) ?? 0) + 1;
}

/** The way from the end to the beginning, turned around. */
function back(trace: readonly Map<number, number>[], oldLength: number, youngLength: number): Step[] {
  const steps: Step[] = [];
  let x = oldLength;
  let y = youngLength;
  for (let count = trace.length - 1; count >= 0; count -= 1) {
    const reach = trace[count] ?? new Map<number, number>();
    const diagonal = x - y;
    const isDown = comesDown(reach, diagonal, count);
    const fromX = reach.get(isDown ? diagonal + 1 : diagonal - 1) ?? 0;
    const fromY = fromX - (isDown ? diagonal + 1 : diagonal - 1);
    while (x > Math.max(fromX, 0) && y > Math.max(fromY, 0)) {
      steps.push("same");
      x -= 1;
      y -= 1;
    }
    if (count > 0) {
      steps.push(isDown ? "added" : "removed");
      x = fromX;
      y = fromY;
    }
  }
  return steps.reverse();
}

/** The difference with long runs of what is the same folded to their first and last lines. */
export function folded(lines: readonly DiffLine[], context = 3): (DiffLine | Fold)[] {
  const shown: (DiffLine | Fold)[] = [];
  for (let at = 0; at < lines.length; ) {
    let end = at;
    while (end < lines.length && lines[end]?.kind === "same") {
      end += 1;
    }
    const keepHead = at === 0 ? 0 : context;
    const keepTail = end === lines.length ? 0 : context;
    const hidden = end - at - keepHead - keepTail;
    if (hidden > 1) {
      shown.push(...lines.slice(at, at + keepHead), { kind: "fold", count: hidden });
      shown.push(...lines.slice(end - keepTail, end));
    } else {
      shown.push(...lines.slice(at, end));
    }
    if (end < lines.length) {
      shown.push(lines[end] as DiffLine);
    }
    at = end + 1;
  }
  return shown;
}
