//! Commands on the members of the cluster, and on who leads it.

use clap::Subcommand;
use quorate_client::api::{Applied, Member, MemberRole, MembersChanged};
use quorate_client::{ChangeMembers, Error};

use crate::Context;
use crate::fail::Failed;
use crate::form::Form;
use crate::output;

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

/// Runs a command on members.
pub async fn run(context: &Context, command: Command) -> Result<(), Failed> {
    let members = context.client.members();
    let (change, how) = match command {
        Command::List => return list(context).await,
        Command::Repair { id } => return repair(context, id).await,
        Command::Add { id, peer_addr, promote, how } => (members.add(id, peer_addr, promote), how),
        Command::Promote { id, how } => (members.promote(id), how),
        Command::Demote { id, how } => (members.demote(id), how),
        Command::Remove { id, how } => (members.remove(id), how),
        Command::Replace { old, new, how } => (members.replace(old, new), how),
    };
    make(context, change, how).await
}

/// Runs a command on leadership.
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
