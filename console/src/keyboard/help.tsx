/** The list of keys, as they work at the moment. Owns its order. */

import { Dialog } from "../ui/dialog.js";
import { overlay } from "./actions.js";
import { type Shortcut, shortcuts } from "./keys.js";
import { Keys } from "./palette.js";

/** The list. */
export function Help() {
  const groups = new Map<string, Shortcut[]>();
  for (const shortcut of shortcuts.value) {
    const group = groups.get(shortcut.group) ?? [];
    groups.set(shortcut.group, [...group.filter(({ keys }) => keys !== shortcut.keys), shortcut]);
  }
  const close = () => {
    overlay.value = undefined;
  };
  return (
    <Dialog title="Keyboard" onClose={close}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
      <div class="help" tabIndex={0}>
        {[...groups].map(([group, list]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {list.map(({ keys, what }) => (
                <div key={keys}>
                  <dt>
                    <Keys keys={keys} />
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
