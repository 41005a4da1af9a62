/** How much of something is used. Owns from when on that is worth a look. */

import { percent } from "../text/words.js";

/** Where a meter turns to the colour of a warning. */
const CLOSE_PERCENT = 80;

/** A bar and its numbers. */
export function Meter(props: {
  readonly label: string;
  readonly used: number;
  readonly of: number;
  readonly text: string;
}) {
  const share = percent(props.used, props.of);
  return (
    <div class={share >= CLOSE_PERCENT ? "meter close" : "meter"}>
      <div class="meter-label">
        <span>{props.label}</span>
        <span>{props.text}</span>
      </div>
      <progress value={share} max={100} aria-label={`${props.label}: ${share} %`} />
    </div>
  );
}
