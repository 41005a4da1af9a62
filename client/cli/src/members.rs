//! Commands on the members of the cluster, and on who leads it.

use std::time::Duration;

use clap::Subcommand;
use quorate_client::api::{Applied, InvitationView, Member, MemberRole, MembersChanged};
use quorate_client::{ChangeMembers, Error};

use crate::fail::Failed;
use crate::form::Form;
use crate::refined::Refined;
use crate::{Context, output, parse};

/// The verbs of `member`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the members as the leader knows them
    List,
    /// Take in a node that was started and waits, as a learner
    ///
    /// A node that is started with the join list of the cluster needs none of this: it asks by itself.
    Add {
        /// Its node id.
        id: u64,
        /// HOST:PORT where it listens for peers.
        peer_addr: String,
        /// Wait until it caught up, then give it a vote.
        #[arg(long)]
        promote: bool,
        #[command(flatten)]
        how: How,
    },
    /// Give a learner that has caught up a vote
    Promote {
        /// Its node id.
        id: u64,
        #[command(flatten)]
        how: How,
    },
    /// Take the vote of a member, which stays a learner
    Demote {
        /// Its node id.
        id: u64,
        #[command(flatten)]
        how: How,
    },
    /// Let a member go; it ends by itself, and its id is not used again
    Remove {
        /// Its node id.
        id: u64,
        #[command(flatten)]
        how: How,
    },
    /// Let a learner vote in place of a voter, which goes, in one step
    Replace {
        /// Who goes.
        old: u64,
        /// The learner that votes instead.
        new: u64,
        #[command(flatten)]
        how: How,
    },
    /// Invite a node, and print the token that it shows: this once, the cluster keeps only a hash
    ///
    /// Nothing else is printed, so that it may go into a file, which the node is started with: quorate-node --join-token-file FILE. The
    /// token is good for one node. Where nodes use TLS with each other, no other newcomer is taken in (see --join-policy of quorate-node).
    #[command(after_help = "Examples:
  (umask 077 && quorate member invite --id 4 > node-4.token)
  quorate member invite --standby --for 1h
Node 3 has lost its disk, and is to come back under its id with an empty one:
  quorate member remove 3
  (umask 077 && quorate member invite --id 3 --for 1h > node-3.token)")]
    Invite {
        /// Only for a node of this id; needed for the id of a node that was removed.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        id: Option<u64>,
        /// For how long it may be used, at most 30 days; without this ten minutes.
        #[arg(long = "for", value_parser = parse::positive_duration, value_name = "TIME")]
        valid_for: Option<Duration>,
        /// Only for a node that is started with --standby.
        #[arg(long)]
        standby: bool,
    },
    /// List the invitations, without their secrets
    #[command(after_help = "Example:\n  quorate member invitations")]
    Invitations,
    /// Revoke an invitation by its id; exit code 3 if there is none
    #[command(after_help = "Example:\n  quorate member revoke 5f0d3c0b6a6f4a0c")]
    Revoke {
        /// Which invitation: the 16 digits behind `qj_`, as `invitations` shows them.
        invitation: String,
    },
    /// Rebuild the state of a member in quarantine from the leader's
    ///
    /// A member that found its state to differ from that of a majority serves nobody until then. The others go on meanwhile.
    Repair {
        /// Its node id.
        id: u64,
    },
}

/// What all changes understand.
#[derive(Debug, clap::Args)]
pub struct How {
    /// Only say what it would come to.
    #[arg(long)]
    dry_run: bool,
    /// Do it also where it is unwise; never where it would cost quorum.
    #[arg(long)]
    force: bool,
}

/// The verbs of `leader`.
#[derive(Debug, Subcommand)]
pub enum Leader {
    /// Hand leadership to another node
    Transfer {
        /// Node id of the new leader; without it the best follower.
        to: Option<u64>,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let members = context.client.members();
    let (change, how) = match command {
        Command::List => return list(context).await,
        Command::Repair { id } => return repair(context, id).await,
        Command::Invite { id, valid_for, standby } => return invite(context, id, valid_for, standby).await,
        Command::Invitations => return invitations(context).await,
        Command::Revoke { invitation } => return revoke(context, &invitation).await,
        Command::Add { id, peer_addr, promote, how } => (members.add(id, peer_addr, promote), how),
        Command::Promote { id, how } => (members.promote(id), how),
        Command::Demote { id, how } => (members.demote(id), how),
        Command::Remove { id, how } => (members.remove(id), how),
        Command::Replace { old, new, how } => (members.replace(old, new), how),
    };
    make(context, change, how).await
}

pub async fn run_leader(context: &Context, command: Leader) -> Result<(), Failed> {
    let Leader::Transfer { to } = command;
    let answer = context.client.transfer_leader(to).await?;
    output::answer(context.shared.output, &answer, || format!("node {} leads", answer.leader_id))
}

async fn list(context: &Context) -> Result<(), Failed> {
    let answer = context.client.members().list().await?;
    if let Some(form) = context.shared.output.data() {
        return if form == Form::Table { output::items(form, &answer.members) } else { output::show(form, &answer) };
    }
    let heading = ["node", "role", "healthy", "behind", "last heard of", "client address", "peer address"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(answer.members.iter().map(row));
    output::table(&rows)?;
    if answer.changing {
        output::line("a change of the voters is under way")?;
    }
    output::line(answer.prospect)
}

async fn invite(context: &Context, id: Option<u64>, life: Option<Duration>, standby: bool) -> Result<(), Failed> {
    let invite = context.client.members().invite().standby(standby);
    let invite = invite
        .given(id, |invite, id| invite.node(id))
        .given(life, |invite, life| invite.valid_for(life))
        .given(context.request_id(), |invite, id| invite.request_id(id));
    let answer = invite.await?;
    output::answer(context.shared.output, &answer, || answer.token.0.clone())
}

async fn invitations(context: &Context) -> Result<(), Failed> {
    let answer = context.client.members().invitations().await?;
    output::page(context.shared.output, &answer, &answer.invitations, shown)
}

fn shown(invitation: &InvitationView) -> String {
    let InvitationView { id, node_id, standby, created, left_ms, used_by, .. } = invitation;
    let whom = node_id.map_or("anybody".to_owned(), |id| format!("node {id}"));
    let standby = if *standby { ", as a standby" } else { "" };
    let end = match (used_by, left_ms) {
        (Some(node), _) => format!("used by node {node}, which is not a member yet"),
        (None, 0) => "its time is over".to_owned(),
        (None, left) => format!("{} left", output::millis(*left)),
    };
    format!("{id}  for {whom}{standby}  created {created}  {end}")
}

async fn revoke(context: &Context, id: &str) -> Result<(), Failed> {
    let answer = context.with_id(context.client.members().revoke_invitation(id)).await?;
    let facts = format!("revoked: {}  revision {}", answer.id, answer.revision);
    output::done(context.shared.output, &answer, answer.replayed, facts)
}

async fn repair(context: &Context, id: u64) -> Result<(), Failed> {
    let answer = context.client.members().repair(id).await?;
    output::answer(context.shared.output, &answer, || match answer.repaired {
        true => format!("node {id} has the leader's state and serves again"),
        false => format!("node {id} trusts its state: nothing was done"),
    })
}

fn row(member: &Member) -> Vec<String> {
    let role = match (member.role, member.leader) {
        (_, true) => "leader",
        (MemberRole::Voter, false) => "voter",
        (MemberRole::Learner, false) => "learner",
    };
    vec![
        member.id.to_string(),
        role.into(),
        if member.healthy { "yes" } else { "no" }.into(),
        member.lag.map_or("-".into(), |lag| lag.to_string()),
        member.last_contact_ms.map_or("never".into(), |age| format!("{} ago", output::millis(age))),
        member.client_addr.clone(),
        member.peer_addr.clone(),
    ]
}

async fn make(context: &Context, change: ChangeMembers<'_>, how: How) -> Result<(), Failed> {
    let done = change.dry_run(how.dry_run).force(how.force).await.map_err(unsure)?;
    output::answer(context.shared.output, &done, || told(&done))
}

/// No request id tells the outcome of a change of the members; but to repeat it is safe.
fn unsure(error: Error) -> Failed {
    match error.applied() {
        Applied::Unknown => Failed::other(format!(
            "{error}; the change may be under way: `quorate member list` shows it, and the same command goes on with it"
        )),
        Applied::No | Applied::Yes => error.into(),
    }
}

fn told(done: &MembersChanged) -> String {
    let begin = match (done.dry_run, done.changed) {
        (true, _) => "dry run, nothing done:",
        (false, true) => "done:",
        (false, false) => "nothing to do:",
    };
    let list = |ids: &[u64]| ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let mut lines = vec![begin.to_owned()];
    lines.extend(done.explanation.iter().map(|said| format!("  {said}")));
    lines.push(format!("  voters: {}", list(&done.voters)));
    if !done.learners.is_empty() {
        lines.push(format!("  learners: {}", list(&done.learners)));
    }
    lines.join("\n")
}
