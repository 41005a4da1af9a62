/** Starts the console. */

import { render } from "preact";
import { App } from "./shell/app.js";
import { follow } from "./state/cluster.js";
import { identify } from "./state/identity.js";
import "./styles.css";

/** So long the first look at the cluster waits for who we are: whoever has to sign in is refused once for each page, not twice. */
const KNOWN_WITHIN_MS = 1_000;

void Promise.race([identify(), new Promise((resolve) => setTimeout(resolve, KNOWN_WITHIN_MS))]).then(follow);
const root = document.getElementById("app");
if (root === null) {
  throw new Error("the page has no place for the console");
}
render(<App />, root);
