/** The cluster: who leads, how the members are, what needs attention and what to do about it. Owns the layout of the place. */

import type { Status } from "quorate";
import { readMembers, readStatus } from "../../api/cluster.js";
import { origin } from "../../api/connection.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { trouble } from "../../state/cluster.js";
import { type Source, useRequest } from "../../state/page.js";
import { bytes, grouped } from "../../text/words.js";
import { useAge } from "../../ui/clock.js";
import { CopyButton } from "../../ui/copy-button.js";
import { Icon } from "../../ui/icon.js";
import { Meter } from "../../ui/meter.js";
import { Page } from "../../ui/page.js";
import { Shown } from "../../ui/states.js";
import { type Advice, adviceOf } from "./advice.js";
import { type Freshness, type Headline as HeadlineWords, headlineOf, together } from "./freshness.js";
import { MemberTable } from "./members.js";

/** How often it looks again. */
const LOOK_EVERY_MS = 2_000;

/** The place. */
export default function ClusterPlace() {
  const status = useRequest(readStatus(), "status", { everyMs: LOOK_EVERY_MS });
  const members = useRequest(readMembers(), "members", { everyMs: LOOK_EVERY_MS });
  const ofStatus = useFreshness(status);
  const ofMembers = useFreshness(members);
  const freshness = members.data === undefined ? ofStatus : together([ofStatus, ofMembers]);
  const reload = () => {
    status.reload();
    members.reload();
  };
  useShortcuts([{ keys: "r", what: "Refresh", group: "Cluster", run: reload }]);
  return (
    <Page
      title="Cluster"
      actions={
        <button type="button" class="button" onClick={reload}>
          <Icon name="reload" />
          <span>Refresh</span>
        </button>
      }
    >
      <Shown what="the state of the cluster" source={status}>
        {(now) => (
          <>
            <Headline said={headlineOf(now, members.data, freshness)} status={now} />
            <AdviceList all={adviceOf(now, members.data, origin)} />
          </>
        )}
      </Shown>
      <section class="block">
        <h2>Members</h2>
        <Shown what="the members" source={members}>
          {(all) => <MemberTable members={all} freshness={ofMembers} onChanged={reload} />}
        </Shown>
      </section>
      {status.data !== undefined && <NodeFacts status={status.data} />}
    </Page>
  );
}

/** How old the last good answer is, from then on, and whether it was asked in vain since. */
function useFreshness(source: Source<unknown>): Freshness {
  const ageMs = useAge(source.data);
  return { ageMs, hasFailed: source.error !== undefined || trouble.value !== undefined };
}

function Headline({ said, status }: { readonly said: HeadlineWords; readonly status: Status }) {
  const { tone, leader, voters, old } = said;
  return (
    <section class={`headline ${tone}`} aria-label="The cluster in a sentence">
      <p class="headline-text">
        <span class={`dot ${tone}`} aria-hidden="true" />
        {leader}
        {voters !== "" && <span>{voters}</span>}
      </p>
      {old !== undefined && <p class="headline-old">{old}</p>}
      <dl class="facts">
        <Fact name="Term" value={grouped(status.term)} />
        <Fact name="Revision" value={grouped(status.revision)} />
        {status.entries !== undefined && <Fact name="Entries" value={grouped(status.entries)} />}
        {status.storedBytes !== undefined && <Fact name="Stored" value={bytes(status.storedBytes)} />}
        <Fact name="Feature level" value={String(status.level)} />
        {(status.epoch ?? 0) > 0 && <Fact name="Epoch" value={String(status.epoch)} />}
      </dl>
    </section>
  );
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function AdviceList({ all }: { readonly all: readonly Advice[] }) {
  if (all.length === 0) {
    return null;
  }
  return (
    <section class="block">
      <h2>Needs attention</h2>
      <ul class="advice-list">
        {all.map((advice) => (
          <li key={advice.title} class={`advice ${advice.tone}`}>
            <Icon name="warning" />
            <div>
              <p class="advice-title">{advice.title}</p>
              <p>{advice.step}</p>
              {advice.command !== undefined && (
                <p class="command">
                  <code>{advice.command}</code>
                  <CopyButton text={advice.command} what="the command" />
                </p>
              )}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function NodeFacts({ status }: { readonly status: Status }) {
  const { diskFreeBytes: free, diskSizeBytes: size, storedBytes, quotaBytes } = status;
  return (
    <section class="block">
      <h2>Node {status.nodeId}, which answers this page</h2>
      <div class="columns">
        <div class="stack">
          {free !== undefined && size !== undefined && (
            <Meter label="Disk" used={size - free} of={size} text={`${bytes(free)} free of ${bytes(size)}`} />
          )}
          {storedBytes !== undefined && (quotaBytes ?? 0) > 0 && (
            <Meter
              label="Quota"
              used={storedBytes}
              of={quotaBytes ?? 0}
              text={`${bytes(storedBytes)} of ${bytes(quotaBytes ?? 0)}`}
            />
          )}
          <p class="hint">
            A node knows its own disk only. Open the console of another node for the disk of that one.
          </p>
        </div>
        <dl class="list">
          <Fact name="Role" value={`${status.role}${status.ready ? "" : ", not ready"}`} />
          <Fact name="Version" value={status.version} />
          <Fact
            name="Log"
            value={`${grouped(status.lastLogIndex)} written, ${grouped(status.appliedIndex)} applied`}
          />
          <Fact name="Snapshot at" value={grouped(status.snapshotIndex)} />
          <Fact name="History from revision" value={grouped(status.oldestRevision)} />
          {status.historyBytes !== undefined && <Fact name="History" value={bytes(status.historyBytes)} />}
          <Fact name="Digest" value={status.digest} />
          <Fact name="Cluster" value={status.clusterId} />
        </dl>
      </div>
    </section>
  );
}
