//! `quorate status`: the cluster on one screen.
//!
//! Owns what is worth a column and what is worth a sentence. Asks every member, also those that no endpoint names.

use quorate_client::MemberStatus;
use quorate_client::api::{ErrorCode, Role, StatusAnswer};
use serde::Serialize;
use serde_json::json;

use crate::fail::Failed;
use crate::form::Form;
use crate::{Context, output};

/// Shows all members. An error where none answers, or where there is no leader, so that the cluster serves nobody.
pub async fn run(context: &Context) -> Result<(), Failed> {
    let members = context.client.overview().await?;
    show(&members, context.shared.output)?;
    let answered = answered(&members);
    let Some(verdict) = Verdict::of(&answered) else {
        return Err(Failed::Condition(ErrorCode::Timeout, "no node answers".into()));
    };
    match verdict.leader {
        Some(_) => Ok(()),
        None => Err(Failed::Condition(ErrorCode::NoLeader, format!("{}, {}", verdict.led_by(), verdict.outlook()))),
    }
}

/// Shows these members.
pub fn show(members: &[MemberStatus], form: Form) -> Result<(), Failed> {
    let answered = answered(members);
    let verdict = Verdict::of(&answered);
    if let Some(form @ (Form::Json | Form::Yaml)) = form.data() {
        return output::show(form, &Overview::of(members, verdict.as_ref(), worries(members, &answered)));
    }
    if let Some(verdict) = verdict.as_ref().filter(|_| form == Form::Text) {
        output::line(verdict.headline())?;
    }
    let heading =
        ["node", "client address", "role", "ready", "term", "applied", "lag", "revision", "disk free", "version"];
    let heading = heading.map(|name| if form == Form::Table { name.to_uppercase() } else { name.to_owned() });
    let mut rows = vec![heading.to_vec()];
    let furthest = answered.iter().map(|status| status.last_log_index).max().unwrap_or(0);
    let has_leader = verdict.is_some_and(|verdict| verdict.leader.is_some());
    rows.extend(members.iter().map(|member| row(member, furthest, has_leader)));
    output::table(&rows)?;
    if form == Form::Text { worries(members, &answered).into_iter().try_for_each(output::line) } else { Ok(()) }
}

fn answered(members: &[MemberStatus]) -> Vec<&StatusAnswer> {
    members.iter().filter_map(|member| member.status.as_ref().ok()).collect()
}

/// What holds of the whole cluster.
struct Verdict<'a> {
    newest: &'a StatusAnswer,
    /// The leader, as far as the nodes that answer can know. A node goes on naming a leader that is gone, and a leader without followers itself.
    leader: Option<u64>,
    voters: usize,
    present: usize,
    /// A node would answer a linearizable read, so a quorum is there, whether or not it answers us.
    serves: bool,
}

impl<'a> Verdict<'a> {
    /// `None` where nobody answers.
    fn of(answered: &[&'a StatusAnswer]) -> Option<Self> {
        let newest = *answered.iter().max_by_key(|status| status.applied_index)?;
        let voters = newest.members.iter().filter(|member| member.voter).count();
        let present = answered.iter().filter(|status| is_voter(newest, status.node_id)).count();
        let serves = answered.iter().any(|status| status.ready);
        let leads = answered.iter().any(|status| status.role == Role::Leader);
        let leader = newest.leader_id.filter(|_| serves || (leads && present > voters / 2));
        Some(Self { newest, leader, voters, present, serves })
    }

    fn led_by(&self) -> String {
        match (self.leader, self.newest.leader_id) {
            (Some(id), _) => format!("leader {id}"),
            (None, Some(last)) => format!("no leader (last: {last})"),
            (None, None) => "no leader".into(),
        }
    }

    fn outlook(&self) -> String {
        match self.present as i64 - (self.voters / 2 + 1) as i64 {
            ..0 if self.serves => "a quorum is there, out of reach from here".into(),
            ..0 => "no quorum".into(),
            0 => "not one more may fail".into(),
            1 => "one more may fail".into(),
            more => format!("{more} more may fail"),
        }
    }

    fn headline(&self) -> String {
        let Self { newest, voters, present, .. } = self;
        let (leader, outlook) = (self.led_by(), self.outlook());
        let levels = match newest.level == newest.level_known {
            true => format!("feature level {}", newest.level),
            false => format!("feature level {} of {}", newest.level, newest.level_known),
        };
        let epoch = if newest.epoch > 0 { format!(", epoch {}", newest.epoch) } else { String::new() };
        format!(
            "cluster {}: {leader}, {present} of {voters} voters answer, {outlook}, {levels}{epoch}",
            newest.cluster_id
        )
    }
}

/// All of it for programs: the verdict, then what it was made of.
#[derive(Serialize)]
struct Overview {
    cluster_id: Option<String>,
    /// `null` where nobody leads.
    leader_id: Option<u64>,
    voters: usize,
    voters_answering: usize,
    /// Whether a majority of the voters is there.
    quorum: bool,
    /// The first line for people.
    verdict: String,
    warnings: Vec<String>,
    nodes: Vec<serde_json::Value>,
}

impl Overview {
    fn of(members: &[MemberStatus], verdict: Option<&Verdict<'_>>, warnings: Vec<String>) -> Self {
        Self {
            cluster_id: verdict.map(|verdict| verdict.newest.cluster_id.clone()),
            leader_id: verdict.and_then(|verdict| verdict.leader),
            voters: verdict.map_or(0, |verdict| verdict.voters),
            voters_answering: verdict.map_or(0, |verdict| verdict.present),
            quorum: verdict.is_some_and(|verdict| verdict.serves || verdict.present > verdict.voters / 2),
            verdict: verdict.map_or_else(|| "no node answers".to_owned(), Verdict::headline),
            warnings,
            nodes: members.iter().map(view).collect(),
        }
    }
}

fn is_voter(status: &StatusAnswer, id: u64) -> bool {
    status.members.iter().any(|member| member.voter && member.id == id)
}

/// A member as programs are shown it.
pub fn view(member: &MemberStatus) -> serde_json::Value {
    match &member.status {
        Ok(status) => json!({"endpoint": member.address, "node_id": member.node_id, "status": status}),
        Err(error) => json!({"endpoint": member.address, "node_id": member.node_id, "error": error.to_string()}),
    }
}

fn row(member: &MemberStatus, furthest: u64, has_leader: bool) -> Vec<String> {
    let id = member.node_id.map_or("-".into(), |id| id.to_string());
    let Ok(status) = &member.status else { return vec![id, member.address.clone(), "no answer".into()] };
    vec![
        id,
        member.address.clone(),
        if status.role == Role::Leader && !has_leader { "was leader" } else { role(status.role) }.into(),
        if status.ready { "yes" } else { "no" }.into(),
        status.term.to_string(),
        status.applied_index.to_string(),
        furthest.saturating_sub(status.applied_index).to_string(),
        status.revision.to_string(),
        status.disk_free_bytes.map_or("-".into(), |free| share(free, status.disk_size_bytes)),
        status.version.clone(),
    ]
}

/// `1.5 GiB (40 %)`
fn share(free: u64, size: Option<u64>) -> String {
    let percent = size.filter(|size| *size > 0).map(|size| format!(" ({} %)", free.saturating_mul(100) / size));
    format!("{}{}", output::bytes(free), percent.unwrap_or_default())
}

/// All that an operator should read of these members, as text.
pub fn worries_of(members: &[MemberStatus]) -> String {
    let answered: Vec<&StatusAnswer> = members.iter().filter_map(|member| member.status.as_ref().ok()).collect();
    worries(members, &answered).into_iter().map(|worry| worry + "\n").collect()
}

/// What an operator should read, one line for each.
fn worries(members: &[MemberStatus], answered: &[&StatusAnswer]) -> Vec<String> {
    let mut worries = Vec::new();
    for member in members {
        let name = member.node_id.map_or_else(|| member.address.clone(), |id| format!("node {id}"));
        match &member.status {
            Ok(status) => worries.extend(status.warnings.iter().map(|warning| format!("{name}: {warning}"))),
            Err(error) => worries.push(format!("{name}: {error}")),
        }
    }
    let versions: std::collections::BTreeSet<_> = answered.iter().map(|status| &status.version).collect();
    if versions.len() > 1 {
        worries.push(format!("several versions are at work: {versions:?}"));
    }
    worries.extend(divergence(answered));
    worries
}

/// Two members at one index must have one digest.
fn divergence(answered: &[&StatusAnswer]) -> Option<String> {
    let differs = |one: &StatusAnswer, other: &StatusAnswer| {
        one.applied_index == other.applied_index && one.digest != other.digest
    };
    answered.iter().enumerate().find_map(|(at, one)| {
        let other = answered[at + 1..].iter().find(|other| differs(one, other))?;
        let (first, second, index) = (one.node_id, other.node_id, one.applied_index);
        Some(format!("nodes {first} and {second} hold different states at log index {index}: one of them is damaged"))
    })
}

/// The role in a word.
fn role(role: Role) -> &'static str {
    match role {
        Role::Leader => "leader",
        Role::Follower => "follower",
        Role::Candidate => "candidate",
        Role::Learner => "learner",
        Role::Outside => "outside",
    }
}
