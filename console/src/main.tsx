/** Starts the console. */

import { render } from "preact";
import { App } from "./shell/app.js";
import { follow } from "./state/cluster.js";
import { identify } from "./state/identity.js";
import "./styles.css";

void identify();
follow();
const root = document.getElementById("app");
if (root === null) {
  throw new Error("the page has no place for the console");
}
render(<App />, root);
