/** The navigation, the state of the cluster in a word, and the switches. Owns nothing but their place. */

import { hasToken } from "../api/connection.js";
import { overlay } from "../keyboard/actions.js";
import { PLACES, placeOf } from "../places/index.js";
import { health, status } from "../state/cluster.js";
import { signOut, userName } from "../state/identity.js";
import { addressOf, BASE, route } from "../state/route.js";
import { isReadOnly, nextTheme, theme } from "../state/settings.js";
import { shownName } from "../text/named.js";
import { Icon } from "../ui/icon.js";
import { Mark } from "./mark.js";

/** The column at the left. */
export function Sidebar() {
  const current = placeOf(route.value.place);
  // A page about one key belongs to the keys.
  const shown = current?.isOfKey ? "keys" : current?.id;
  const close = () => {
    if (overlay.peek() === "menu") {
      overlay.value = undefined;
    }
  };
  return (
    <div class="sidebar">
      <a class="brand" href={BASE} onClick={close}>
        <Mark />
        <span>Quorate</span>
      </a>
      <nav aria-label="Places">
        {PLACES.filter((place) => !place.isOfKey).map((place) => (
          <a
            key={place.id}
            class="nav"
            href={addressOf(place.id)}
            aria-current={place.id === shown ? "page" : undefined}
            title={place.what}
            onClick={close}
          >
            <Icon name={place.icon} />
            <span>{place.title}</span>
          </a>
        ))}
      </nav>
      <div class="sidebar-foot">
        <Pulse />
        <label class="switch">
          <input
            type="checkbox"
            role="switch"
            checked={isReadOnly.value}
            aria-checked={isReadOnly.value}
            onChange={(event) => {
              isReadOnly.value = event.currentTarget.checked;
            }}
          />
          <span class="switch-track" aria-hidden="true" />
          <span>Read only</span>
        </label>
        <div class="sidebar-row">
          <button type="button" class="button quiet small" onClick={nextTheme}>
            <Icon name="theme" />
            <span>{{ system: "System", light: "Light", dark: "Dark" }[theme.value]}</span>
          </button>
          <button type="button" class="button quiet small" onClick={() => (overlay.value = "help")}>
            <kbd>?</kbd>
            <span>Keyboard</span>
          </button>
        </div>
        {userName() !== undefined && (
          <div class="sidebar-row user">
            <span title="Signed in as">
              <bdi>{shownName(userName() ?? "")}</bdi>
            </span>
            {hasToken() && (
              <button type="button" class="button quiet small" onClick={signOut}>
                Sign out
              </button>
            )}
          </div>
        )}
      </div>
    </div>
  );
}

const PULSES = {
  unknown: { tone: "quiet", text: "Looking …" },
  lost: { tone: "bad", text: "No answer, trying again" },
  "no leader": { tone: "warn", text: "No leader for now" },
  well: { tone: "good", text: "" },
} as const;

/** The state of the cluster in a word. */
function Pulse() {
  const { tone, text } = PULSES[health.value];
  const now = status.value;
  return (
    <a class="pulse" href={addressOf("cluster")} aria-live="polite">
      <span class={`dot ${tone}`} aria-hidden="true" />
      <span>
        {health.value === "well" && now !== undefined ? `Node ${now.leaderId} leads, term ${now.term}` : text}
      </span>
    </a>
  );
}
