/** The table of members and what can be done to each. Owns the questions that come before a change: what it would come to. */

import { useState } from "preact/hooks";
import type { Members, MembersChanged, QuorateError } from "quorate";
import { changeMember, type MemberVerb, transferLeader } from "../../api/cluster.js";
import { asError } from "../../api/errors.js";
import type { Request } from "../../api/request.js";
import { status } from "../../state/cluster.js";
import { notify } from "../../state/notices.js";
import { perform } from "../../state/page.js";
import { isReadOnly } from "../../state/settings.js";
import { duration, grouped } from "../../text/words.js";
import { Cell } from "../../ui/cell.js";
import { confirm } from "../../ui/confirm.js";
import { Problem } from "../../ui/problem.js";

type Member = Members["members"][number];
/** Says what is being done at the moment: nothing while a question is open. */
type Say = (what: string | undefined) => void;
type Act = (say: Say) => Promise<void>;

/** The table. */
export function MemberTable({
  members,
  onChanged,
}: {
  readonly members: Members;
  readonly onChanged: () => void;
}) {
  const [error, setError] = useState<QuorateError | undefined>(undefined);
  const [busy, setBusy] = useState<string | undefined>(undefined);
  const attempt = async (act: Act) => {
    setError(undefined);
    try {
      await act(setBusy);
    } catch (error) {
      setError(asError(error));
    }
    setBusy(undefined);
    onChanged();
  };
  return (
    <>
      {error !== undefined && <Problem error={error} />}
      {members.changing && <p class="hint">A change of the members is under way.</p>}
      {busy !== undefined && (
        <p class="hint" role="status">
          {busy} …
        </p>
      )}
      <div class="table-box">
        <table class="table stacked">
          <thead>
            <tr>
              <th>Node</th>
              <th>Role</th>
              <th>Heard of</th>
              <th class="number">Behind</th>
              <th>For clients</th>
              <th>For peers</th>
              <th>
                <span class="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {members.members.map((member) => (
              <tr key={member.id}>
                <Cell label="Node">
                  <strong>{member.id}</strong>
                  {member.id === status.value?.nodeId && <span class="badge quiet">this one</span>}
                </Cell>
                <Cell label="Role">
                  <span class={member.leader ? "badge good" : "badge quiet"}>
                    {member.leader ? "leader" : member.role}
                  </span>
                </Cell>
                <Cell label="Heard of">
                  <span class={`dot ${member.healthy ? "good" : "bad"}`} aria-hidden="true" />
                  {heardOf(member)}
                </Cell>
                <Cell label="Behind" isNumber>
                  {member.lag === undefined ? "–" : grouped(member.lag)}
                </Cell>
                <Cell label="For clients">
                  <code>{member.clientAddr}</code>
                </Cell>
                <Cell label="For peers">
                  <code>{member.peerAddr}</code>
                </Cell>
                <Cell label="" class="row-actions">
                  <MemberActions member={member} isBusy={busy !== undefined} attempt={attempt} />
                </Cell>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="hint">{members.prospect}</p>
    </>
  );
}

function heardOf(member: Member): string {
  if (member.leader) {
    return "leads";
  }
  if (member.lastContactMs === undefined) {
    return member.healthy ? "yes" : "not heard of";
  }
  return `${duration(member.lastContactMs)} ago`;
}

interface ActionsProps {
  readonly member: Member;
  readonly isBusy: boolean;
  readonly attempt: (act: Act) => Promise<void>;
}

function MemberActions({ member, isBusy, attempt }: ActionsProps) {
  const isOff = isBusy || isReadOnly.value;
  const change = (verb: MemberVerb) => () => void attempt((say) => changeAfterDryRun(verb, member.id, say));
  return (
    <>
      {member.role === "voter" && !member.leader && (
        <button
          type="button"
          class="button small"
          disabled={isOff}
          onClick={() => void attempt((say) => transfer(member.id, say))}
        >
          Let it lead
        </button>
      )}
      {member.role === "learner" && (
        <button type="button" class="button small" disabled={isOff} onClick={change("promote")}>
          Give a vote
        </button>
      )}
      <button type="button" class="button small danger-text" disabled={isOff} onClick={change("remove")}>
        Remove
      </button>
    </>
  );
}

async function transfer(id: number, say: Say): Promise<void> {
  const isSure = await confirm({
    title: `Let node ${id} lead?`,
    body: (
      <p>
        Leadership is handed to node {id}. Writes wait a moment while it changes hands; none is lost. Locks,
        sessions and elections stay as they are.
      </p>
    ),
    action: `Let node ${id} lead`,
  });
  if (isSure) {
    say(`Handing leadership to node ${id}`);
    const { leaderId } = await perform(transferLeader(id));
    notify(`Node ${leaderId} leads`);
  }
}

const QUESTIONS: Record<MemberVerb, (id: number) => string> = {
  promote: (id) => `Give node ${id} a vote`,
  demote: (id) => `Take the vote of node ${id}`,
  remove: (id) => `Remove node ${id}`,
};

const DOING: Record<MemberVerb, (id: number) => string> = {
  promote: (id) => `Giving node ${id} a vote`,
  demote: (id) => `Taking the vote of node ${id}`,
  remove: (id) => `Removing node ${id}`,
};

/** The leader says what the change would come to; only then it is made. */
async function changeAfterDryRun(verb: MemberVerb, id: number, say: Say): Promise<void> {
  const request = (dryRun: boolean): Request<MembersChanged> => changeMember(verb, id, dryRun);
  say("Asking what it would come to");
  const outcome = await perform(request(true));
  say(undefined);
  const isSure = await confirm({
    title: `${QUESTIONS[verb](id)}?`,
    body: (
      <>
        <p>The leader says what will happen:</p>
        <ul>
          {outcome.explanation.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
        <p>
          Voters then: {outcome.voters.join(", ")}
          {outcome.learners.length > 0 && `; learners: ${outcome.learners.join(", ")}`}
        </p>
      </>
    ),
    action: QUESTIONS[verb](id),
    isDangerous: verb !== "promote",
  });
  if (isSure) {
    say(DOING[verb](id));
    await perform(request(false));
    notify(`Done: ${QUESTIONS[verb](id).toLowerCase()}`);
  }
}
