/** The requests behind the page, in four languages to copy, and the calls that were made for them. Owns which language is shown. */

import { useState } from "preact/hooks";
import { hasToken, made, origin } from "../api/connection.js";
import { copyAs, LANGUAGES, type Language } from "../api/copy-as.js";
import type { Request } from "../api/request.js";
import { visible } from "../json/format.js";
import { overlay } from "../keyboard/actions.js";
import { requests } from "../state/page.js";
import { CopyButton } from "../ui/copy-button.js";
import { Dialog } from "../ui/dialog.js";
import { Said } from "../ui/key-name.js";
import { Empty } from "../ui/states.js";

const LANGUAGE_ITEM = "quorate.language";

function lastLanguage(): Language {
  const stored = localStorage.getItem(LANGUAGE_ITEM);
  return LANGUAGES.find(({ id }) => id === stored)?.id ?? "curl";
}

/** The drawer. */
export function CopyDrawer() {
  const [language, setLanguage] = useState<Language>(lastLanguage);
  const choose = (id: Language) => {
    localStorage.setItem(LANGUAGE_ITEM, id);
    setLanguage(id);
  };
  const close = () => {
    overlay.value = undefined;
  };
  return (
    <Dialog title="The requests of this page" at="right" onClose={close}>
      <fieldset class="segments">
        <legend class="unseen">Language</legend>
        {LANGUAGES.map(({ id, name }) => (
          <label key={id} class={id === language ? "segment active" : "segment"}>
            <input type="radio" name="language" checked={id === language} onChange={() => choose(id)} />
            {name}
          </label>
        ))}
      </fieldset>
      {requests.value.length === 0 && <Empty title="This page has asked for nothing yet" />}
      {requests.value.map((request) => (
        <OneRequest key={request.title} request={request} language={language} />
      ))}
      {hasToken() && (
        <p class="hint">Your token is not part of what is copied. Set QUORATE_TOKEN where you run it.</p>
      )}
      <Calls />
    </Dialog>
  );
}

function OneRequest({
  request,
  language,
}: {
  readonly request: Request<unknown>;
  readonly language: Language;
}) {
  const code = copyAs(request, language, { origin, hasToken: hasToken() });
  return (
    <section class="copied">
      <header>
        <h3>
          <Said text={request.title} />
        </h3>
        {code !== undefined && <CopyButton text={code} what={request.title} />}
      </header>
      {code === undefined ? (
        <p class="hint">The command line has no command for this.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard
        <pre tabIndex={0}>{shortened(code)}</pre>
      )}
    </section>
  );
}

/** So much of a text is shown; all of it is copied. */
const SHOWN_MAX = 4_000;

function shortened(code: string): string {
  const shown = code.length > SHOWN_MAX ? `${code.slice(0, SHOWN_MAX)}\n… (all of it is copied)` : code;
  return shown.split("\n").map(visible).join("\n");
}

function Calls() {
  return (
    <details class="calls">
      <summary>Request log</summary>
      <table>
        <thead>
          <tr>
            <th>Call</th>
            <th>Status</th>
            <th class="number">Time</th>
          </tr>
        </thead>
        <tbody>
          {made.value.slice(0, 20).map((call) => (
            <tr key={call.number}>
              <td class="call">
                <code>
                  {call.method} {call.target}
                </code>
              </td>
              <td>{call.status ?? "no answer"}</td>
              <td class="number">{call.ms} ms</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
