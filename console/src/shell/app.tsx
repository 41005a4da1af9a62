/**
 * The frame around all places.
 *
 * Owns what is always there (navigation, bar, windows over the page, notices), the keys that work everywhere, and the loading of the
 * code of a place.
 */

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { QuorateError } from "quorate";
import { strangerOf } from "../api/errors.js";
import { actions, overlay, toggleOverlay } from "../keyboard/actions.js";
import { Help } from "../keyboard/help.js";
import { type Shortcut, useShortcuts } from "../keyboard/keys.js";
import { Keys, Palette } from "../keyboard/palette.js";
import { type Place, placeOf } from "../places/index.js";
import { trouble } from "../state/cluster.js";
import { identity } from "../state/identity.js";
import { dismiss, notices } from "../state/notices.js";
import { clearRequests } from "../state/page.js";
import { addressOf, BASE, route } from "../state/route.js";
import { isReadOnly } from "../state/settings.js";
import { shownText } from "../text/named.js";
import { Confirming } from "../ui/confirm.js";
import { Dialog } from "../ui/dialog.js";
import { Icon } from "../ui/icon.js";
import { Page } from "../ui/page.js";
import { Empty, Loading } from "../ui/states.js";
import { CopyDrawer } from "./copy-drawer.js";
import { Sidebar } from "./sidebar.js";
import { SignIn } from "./sign-in.js";

/** The console. */
export function App() {
  useShortcuts(everywhere());
  if (identity.value.kind === "unknown") {
    return <SignIn />;
  }
  return (
    <div class="app">
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <Sidebar />
      <div class="main">
        <Bar />
        {trouble.value !== undefined && <Trouble error={trouble.value} />}
        <main id="content" tabIndex={-1}>
          <Content />
        </main>
      </div>
      <Overlays />
      <Confirming />
      <Notices />
    </div>
  );
}

/** Why what is shown may be old. */
function Trouble({ error }: { readonly error: QuorateError }) {
  const stranger = strangerOf(error);
  return (
    <p class="banner" role="status">
      {stranger === undefined
        ? `No answer from the cluster: ${error.detail}. What you see may be old. It is tried again by itself.`
        : `${stranger.detail} ${stranger.advice}`}
    </p>
  );
}

function everywhere(): Shortcut[] {
  const ofActions = actions().flatMap(({ keys, title, run }) =>
    keys === undefined ? [] : [{ keys, what: title, group: "Everywhere", run }],
  );
  return [
    { keys: "mod+k", what: "Open the palette", group: "Everywhere", run: () => toggleOverlay("palette") },
    ...ofActions,
  ];
}

/** The line above a place: what is needed at any time. */
function Bar() {
  return (
    <header class="bar">
      <button
        type="button"
        class="button quiet square menu-button"
        aria-label="Places"
        onClick={() => toggleOverlay("menu")}
      >
        <Icon name="menu" />
      </button>
      <button type="button" class="button search-button" onClick={() => toggleOverlay("palette")}>
        <Icon name="find" />
        <span>Go to, open a key …</span>
        <Keys keys="mod+k" />
      </button>
      {isReadOnly.value && <span class="badge">Read only</span>}
      <button
        type="button"
        class="button copy-button"
        aria-label="Copy as"
        onClick={() => toggleOverlay("copy")}
      >
        <Icon name="code" />
        <span>Copy as</span>
      </button>
    </header>
  );
}

function Overlays() {
  switch (overlay.value) {
    case "palette":
      return <Palette />;
    case "help":
      return <Help />;
    case "copy":
      return <CopyDrawer />;
    case "menu":
      return (
        <Dialog title="Places" at="left" isBare onClose={() => toggleOverlay("menu")}>
          <Sidebar />
        </Dialog>
      );
    default:
      return null;
  }
}

function Notices() {
  return (
    <div class="notices" aria-live="polite">
      {notices.value.map(({ id, text }) => (
        <p key={id} class="notice">
          <bdi>{shownText(text)}</bdi>
          <button type="button" class="button quiet square" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" />
          </button>
        </p>
      ))}
    </div>
  );
}

/** What became of the code of a place. */
type Code = { readonly place: Place; readonly Component?: ComponentType; readonly isMissing?: true };

function Content() {
  const place = placeOf(route.value.place);
  const [code, setCode] = useState<Code | undefined>(undefined);
  useEffect(() => {
    clearRequests();
    if (place === undefined) {
      return;
    }
    let isCurrent = true;
    const set = (code: Code) => {
      if (isCurrent) {
        setCode(code);
      }
    };
    place.load().then(
      (module) => set({ place, Component: module.default }),
      // The node was exchanged for another version, which has other files.
      () => set({ place, isMissing: true }),
    );
    return () => {
      isCurrent = false;
    };
  }, [place]);
  if (place === undefined) {
    return <NoPlace />;
  }
  if (code?.place !== place) {
    return (
      <Page title={place.title}>
        <Loading what={place.title} />
      </Page>
    );
  }
  return code.Component === undefined ? <OldPage place={place} /> : <code.Component />;
}

function NoPlace() {
  return (
    <Page title="Nothing here">
      <Empty title="There is no such place">
        <p>
          <a href={BASE}>Go to the cluster</a>, or press <kbd>Ctrl K</kbd>.
        </p>
      </Empty>
    </Page>
  );
}

function OldPage({ place }: { readonly place: Place }) {
  return (
    <Page title={place.title}>
      <Empty title="This place could not be loaded">
        <p>The node does not answer, or has another version of the console by now.</p>
        <p>
          <button
            type="button"
            class="button primary"
            onClick={() => location.assign(addressOf(place.id) + location.hash)}
          >
            Reload the page
          </button>
        </p>
      </Empty>
    </Page>
  );
}
