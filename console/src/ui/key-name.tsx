/** A key, or another text of somebody's, so that it cannot pose as something else. Owns that its direction stays within it. */

import { shownKey } from "quorate";
import { visible } from "../json/format.js";

/** The text, with what cannot be seen in it escaped, and so that no two keys look alike. */
export function KeyName({ name }: { readonly name: string }) {
  return <bdi class="key-name">{visible(shownKey(name))}</bdi>;
}
