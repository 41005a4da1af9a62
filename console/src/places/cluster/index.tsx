/** The cluster: who leads, how the members are, what needs attention and what to do about it. Owns the layout of the place. */

import type { Members, Status } from "quorate";
import { readMembers, readStatus } from "../../api/cluster.js";
import { origin } from "../../api/connection.js";
import { useShortcuts } from "../../keyboard/keys.js";
import { useRequest } from "../../state/page.js";
import { bytes, grouped } from "../../text/words.js";
import { CopyButton } from "../../ui/copy-button.js";
import { Icon } from "../../ui/icon.js";
import { Meter } from "../../ui/meter.js";
import { Page } from "../../ui/page.js";
import { Shown } from "../../ui/states.js";
import { type Advice, adviceOf, outlookOf } from "./advice.js";
import { MemberTable } from "./members.js";

/** How often it looks again. */
const LOOK_EVERY_MS = 2_000;

/** The place. */
export default function ClusterPlace() {
  const status = useRequest(readStatus(), "status", { everyMs: LOOK_EVERY_MS });
  const members = useRequest(readMembers(), "members", { everyMs: LOOK_EVERY_MS });
  const reload = () => {
    status.reload();
    members.reload();
  };
  useShortcuts([{ keys: "r", what: "Look again", group: "Cluster", run: reload }]);
  return (
    <Page
      title="Cluster"
      actions={
        <button type="button" class="button" onClick={reload}>
          <Icon name="reload" />
          <span>Look again</span>
        </button>
      }
    >
      <Shown what="the state of the cluster" source={status}>
        {(now) => (
          <>
            <Headline status={now} members={members.data} />
            <AdviceList all={adviceOf(now, members.data, origin)} />
          </>
        )}
      </Shown>
      <section class="block">
        <h2>Members</h2>
        <Shown what="the members" source={members}>
          {(all) => <MemberTable members={all} onChanged={reload} />}
        </Shown>
      </section>
      {status.data !== undefined && <NodeFacts status={status.data} />}
    </Page>
  );
}

function Headline({ status, members }: { readonly status: Status; readonly members: Members | undefined }) {
  const voters = members?.members.filter((member) => member.role === "voter") ?? [];
  const healthy = voters.filter((member) => member.healthy).length;
  const spare = members === undefined ? undefined : healthy - members.needed;
  const tone =
    status.leaderId === undefined || (spare ?? 0) < 0
      ? "bad"
      : spare === 0 && voters.length > 1
        ? "warn"
        : "good";
  return (
    <section class={`headline ${tone}`} aria-label="The cluster in a sentence">
      <p class="headline-text">
        <span class={`dot ${tone}`} aria-hidden="true" />
        {status.leaderId === undefined ? "No leader" : `Node ${status.leaderId} leads`}
        {members !== undefined && (
          <span>
            , {healthy} of {voters.length} voters heard of, {outlookOf(members)}
          </span>
        )}
      </p>
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
      <h2>What to look at</h2>
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
