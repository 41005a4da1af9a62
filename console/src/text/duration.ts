/** Spans of time as people type them. Owns the units. */

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const PART = /\s*(\d+(?:\.\d+)?)\s*(ms|min|s|m|h|d)/y;

/** Milliseconds of `90s`, `10m`, `1h 30m`, `7d`; `undefined` for what is no span. */
export function parseDuration(text: string): number | undefined {
  const rest = text.trim();
  let sum = 0;
  let at = 0;
  while (at < rest.length) {
    PART.lastIndex = at;
    const part = PART.exec(rest);
    if (part === null) {
      return undefined;
    }
    sum += Number(part[1]) * (UNITS[part[2] ?? ""] ?? Number.NaN);
    at = PART.lastIndex;
  }
  return rest === "" ? undefined : Math.round(sum);
}
