/** A name of somebody's, and a text that has names in it, so that neither can pose as something else. Owns that its direction stays within it. */

import { shownName, shownText } from "../text/named.js";

/** The name, so that no two look alike. */
export function KeyName({ name }: { readonly name: string }) {
  return <bdi class="key-name">{shownName(name)}</bdi>;
}

/** The text, in which names are as they are shown. */
export function Said({ text }: { readonly text: string }) {
  return <bdi class="key-name">{shownText(text)}</bdi>;
}
