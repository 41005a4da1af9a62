/** Numbers, sizes and times as people read them. Owns their units and digits. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** `1.5 GiB` */
export function bytes(count: number): string {
  let rest = count;
  let unit = 0;
  while (rest >= 1024 && unit < UNITS.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || rest >= 100 ? 0 : 1;
  return `${rest.toFixed(digits)} ${UNITS[unit]}`;
}

/** A whole number, thousands apart. Takes decimal strings, which may be longer than a float holds. */
export function grouped(count: number | string): string {
  return String(count).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** `1 key`, `2 keys` */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** A share of a whole in percent. */
export function percent(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((part / whole) * 100);
}

const STEPS: readonly [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
];

/** How long: `350 ms`, `12 s`, `5 min`, `3 d` */
export function duration(ms: number): string {
  const step = STEPS.find(([size]) => ms >= size);
  return step === undefined ? `${Math.round(ms)} ms` : `${Math.floor(ms / step[0])} ${step[1]}`;
}

/** How long ago this moment is. */
export function ago(time: string, now: number): string {
  const ms = Math.max(0, now - Date.parse(time));
  return ms < 1_000 ? "just now" : `${duration(ms)} ago`;
}

/** A moment, in the time zone of the machine: `2026-11-26 03:20:15` */
export function moment(time: string): string {
  const at = new Date(time);
  const two = (number: number) => String(number).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
