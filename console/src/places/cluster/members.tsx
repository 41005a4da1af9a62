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
import { grouped } from "../../text/words.js";
import { Cell } from "../../ui/cell.js";
import { confirm } from "../../ui/confirm.js";
import { Problem } from "../../ui/problem.js";
import { adviceOnRefusal, type Freshness, heardOf, refusalOf, toneOf, whyItCannotLead } from "./freshness.js";

type Member = Members["members"][number];
/** Says what is being done at the moment: nothing while a question is open. */
type Say = (what: string | undefined) => void;
type Act = (say: Say) => Promise<void>;

/** What went wrong, and the command that asks for the same. */
interface Failed {
  readonly error: QuorateError;
  readonly command: string;
}

/** The table. */
export function MemberTable({
  members,
  freshness,
  onChanged,
}: {
  readonly members: Members;
  readonly freshness: Freshness;
  readonly onChanged: () => void;
}) {
  const [failed, setFailed] = useState<Failed | undefined>(undefined);
  const [busy, setBusy] = useState<string | undefined>(undefined);
  const attempt = async (command: string, act: Act) => {
    setFailed(undefined);
    try {
      await act(setBusy);
    } catch (error) {
      setFailed({ error: asError(error), command });
    }
    setBusy(undefined);
    onChanged();
  };
  return (
    <>
      {failed !== undefined && (
        <Problem
          error={failed.error}
          detail={refusalOf(failed.error.detail)}
          advice={adviceOnRefusal(failed.error, failed.command)}
        />
      )}
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
              <th>Last contact</th>
              <th class="number">Lag</th>
              <th>Client address</th>
              <th>Peer address</th>
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
                <Cell label="Last contact">
                  <span class={`dot ${toneOf(member, freshness)}`} aria-hidden="true" />
                  {heardOf(member, freshness)}
                </Cell>
                <Cell label="Lag" isNumber>
                  {member.lag === undefined ? "–" : grouped(member.lag)}
                </Cell>
                <Cell label="Client address">
                  <code>{member.clientAddr}</code>
                </Cell>
                <Cell label="Peer address">
                  <code>{member.peerAddr}</code>
                </Cell>
                <Cell label="" class="row-actions">
                  <MemberActions
                    member={member}
                    whyNot={whyItCannotLead(member, freshness)}
                    isBusy={busy !== undefined}
                    attempt={attempt}
                  />
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

interface ActionsProps {
  readonly member: Member;
  /** Why it cannot be made the leader. */
  readonly whyNot: string | undefined;
  readonly isBusy: boolean;
  readonly attempt: (command: string, act: Act) => Promise<void>;
}

function MemberActions({ member, whyNot, isBusy, attempt }: ActionsProps) {
  const isOff = isBusy || isReadOnly.value;
  const canBeAsked = member.role === "voter" && !member.leader;
  const change = (verb: MemberVerb) => () =>
    void attempt(`quorate member ${verb} ${member.id}`, (say) => changeAfterDryRun(verb, member.id, say));
  return (
    <>
      {canBeAsked && (
        <button
          type="button"
          class="button small"
          disabled={isOff || whyNot !== undefined}
          title={whyNot}
          aria-describedby={whyNot === undefined ? undefined : `why-${member.id}`}
          onClick={() =>
            void attempt(`quorate leader transfer ${member.id}`, (say) => transfer(member.id, say))
          }
        >
          Make leader
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
      {canBeAsked && whyNot !== undefined && (
        <small class="hint row-why" id={`why-${member.id}`}>
          {whyNot}
        </small>
      )}
    </>
  );
}

async function transfer(id: number, say: Say): Promise<void> {
  const isSure = await confirm({
    title: `Make node ${id} the leader?`,
    body: (
      <p>
        Leadership is handed to node {id}. Writes wait a moment while it changes hands; none is lost. Locks,
        sessions and elections stay as they are.
      </p>
    ),
    action: `Make node ${id} the leader`,
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
  say("Trying it without a change");
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
