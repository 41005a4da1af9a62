/**
 * Who holds what of the limited resources of the node that answers.
 *
 * Owns the layout, and that the resource whose accounts are shown stands in the address.
 */

import type { NodeCallers } from "quorate";
import { readCallers } from "../../api/cluster.js";
import { visible } from "../../json/format.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { useRequest } from "../../state/page.js";
import { addressOf, route } from "../../state/route.js";
import { grouped, percent } from "../../text/words.js";
import { Cell } from "../../ui/cell.js";
import { Icon } from "../../ui/icon.js";
import { Page } from "../../ui/page.js";
import { Empty, Shown } from "../../ui/states.js";
import { amountOf, type Caller, chosen, fillOf, kindOf, type Resource, waitsOf, wordsOf } from "./words.js";

/** How often it looks again. */
const LOOK_EVERY_MS = 3_000;

/** The place. */
export default function CallersPlace() {
  const callers = useRequest(readCallers(), "callers", { everyMs: LOOK_EVERY_MS });
  const reload = () => callers.reload();
  useShortcuts([{ keys: "r", what: "Refresh", group: "Callers", run: reload }]);
  return (
    <Page
      title="Callers"
      actions={
        <button type="button" class="button" onClick={reload}>
          <Icon name="reload" />
          <span>Refresh</span>
        </button>
      }
    >
      <Shown what="the resources of the node" source={callers}>
        {(now) => <Resources all={now} wanted={route.value.query.get("resource") ?? ""} />}
      </Shown>
    </Page>
  );
}

function Resources({ all, wanted }: { readonly all: NodeCallers; readonly wanted: string }) {
  const shown = chosen(all.resources, wanted);
  return (
    <>
      <section class="block">
        <h2>Node {all.nodeId}, which answers this page</h2>
        <div class="table-box">
          <table class="table stacked" aria-label="Resources of the node">
            <thead>
              <tr>
                <th>Resource</th>
                <th class="number">Taken</th>
                <th class="number">Limit</th>
                <th>Full</th>
                <th class="number">Refused to all</th>
                <th class="number">Refused beyond a share</th>
                <th>Holds most</th>
              </tr>
            </thead>
            <tbody>
              {all.resources.map((resource) => (
                <ResourceRow
                  key={resource.resource}
                  resource={resource}
                  isShown={resource.resource === shown?.resource}
                />
              ))}
            </tbody>
          </table>
        </div>
        <p class="hint">
          What was refused is counted since the start of the node. Every node has resources of its own: open
          the console of another node for those of that one.
        </p>
      </section>
      {shown === undefined ? (
        <Empty title="Nobody holds anything of them">
          <p>Accounts are listed here while they do.</p>
        </Empty>
      ) : (
        <Accounts of={shown} />
      )}
    </>
  );
}

function ResourceRow({ resource, isShown }: { readonly resource: Resource; readonly isShown: boolean }) {
  const { title, what } = wordsOf(resource);
  const { tone, text } = fillOf(resource);
  const [most] = resource.callers;
  return (
    <tr>
      <Cell label="Resource">
        <a
          class="row-name"
          href={addressOf("callers", { resource: resource.resource })}
          aria-current={isShown ? "true" : undefined}
          title={what}
        >
          {title}
        </a>
      </Cell>
      <Cell label="Taken" isNumber>
        {amountOf(resource, resource.taken)}
      </Cell>
      <Cell label="Limit" isNumber>
        {amountOf(resource, resource.bound)}
      </Cell>
      <Cell label="Full">
        <span class={`badge ${tone}`}>{text}</span>
      </Cell>
      <Cell label="Refused to all" isNumber>
        {grouped(resource.refused)}
      </Cell>
      <Cell label="Refused beyond a share" isNumber>
        {grouped(resource.shareRefused)}
      </Cell>
      <Cell label="Holds most">{most === undefined ? "–" : <Account caller={most} />}</Cell>
    </tr>
  );
}

function Account({ caller }: { readonly caller: Caller }) {
  return (
    <span>
      {kindOf(caller)} {caller.name !== undefined && <bdi>{visible(caller.name)}</bdi>}
    </span>
  );
}

function Accounts({ of }: { readonly of: Resource }) {
  const { title, what, step } = wordsOf(of);
  const waits = waitsOf(of);
  return (
    <section class="block">
      <h2>{title}: who holds most</h2>
      <p class="hint">
        {what}. One account may hold {amountOf(of, of.share)}.
      </p>
      {waits !== undefined && <p class="hint">{waits}</p>}
      {of.callers.length === 0 ? (
        <Empty title="Nobody holds anything of it" />
      ) : (
        <>
          <div class="table-box">
            <table class="table stacked" aria-label={`Accounts that hold most: ${title}`}>
              <thead>
                <tr>
                  <th>Account</th>
                  <th class="number">Holds</th>
                  <th class="number">Of its share</th>
                </tr>
              </thead>
              <tbody>
                {of.callers.map((caller) => (
                  <tr key={`${caller.kind} ${caller.name ?? ""}`}>
                    <Cell label="Account">
                      <Account caller={caller} />
                    </Cell>
                    <Cell label="Holds" isNumber>
                      {amountOf(of, caller.held)}
                    </Cell>
                    <Cell label="Of its share" isNumber>
                      {percent(caller.held, of.share)} %
                    </Cell>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {step !== "" && <p class="hint">If one account holds most of it: {step}</p>}
        </>
      )}
    </section>
  );
}
