/** A moment: how long ago, and when exactly. Owns nothing but its form. */

import { ago, moment } from "../text/words.js";

/** How long ago it was; the moment itself on hovering. */
export function Time({ at }: { readonly at: string }) {
  return (
    <time dateTime={at} title={`${moment(at)} (${at})`}>
      {ago(at, Date.now())}
    </time>
  );
}
