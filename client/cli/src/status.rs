//! `quorate status`: the cluster on one screen.
//!
//! Owns what is worth a column and what is worth a sentence. Asks every member, also those that no endpoint names.

use quorate_client::MemberStatus;
use quorate_client::api::{Role, StatusAnswer};
use serde_json::json;

use crate::Context;
use crate::fail::Failed;
use crate::form::Form;
use crate::output;

/// Shows all members. An error where none answers.
pub async fn run(context: &Context) -> Result<(), Failed> {
    let members = context.client.overview().await?;
    show(&members, context.shared.output)?;
    if members.iter().all(|member| member.status.is_err()) { Err(Failed::other("no node answers")) } else { Ok(()) }
}

/// Shows these members.
pub fn show(members: &[MemberStatus], form: Form) -> Result<(), Failed> {
    if form != Form::Text {
        let views: Vec<_> = members.iter().map(view).collect();
        return output::show(form, &views);
    }
    let answered: Vec<&StatusAnswer> = members.iter().filter_map(|member| member.status.as_ref().ok()).collect();
    if let Some(newest) = answered.iter().max_by_key(|status| status.applied_index) {
        output::line(headline(newest, &answered))?;
    }
    let heading =
        ["node", "client address", "role", "ready", "term", "applied", "lag", "revision", "disk free", "version"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let furthest = answered.iter().map(|status| status.last_log_index).max().unwrap_or(0);
    rows.extend(members.iter().map(|member| row(member, furthest)));
    output::table(&rows)?;
    for worry in worries(members, &answered) {
        output::line(worry)?;
    }
    Ok(())
}

/// What holds of the whole cluster.
fn headline(newest: &StatusAnswer, answered: &[&StatusAnswer]) -> String {
    let leader = newest.leader_id.map_or("no leader".into(), |id| format!("leader {id}"));
    let voters = newest.members.iter().filter(|member| member.voter).count();
    let present = answered.iter().filter(|status| is_voter(newest, status.node_id)).count();
    let spare = present as i64 - (voters / 2 + 1) as i64;
    let outlook = match spare {
        ..0 => "no quorum".to_owned(),
        0 => "not one more may fail".to_owned(),
        1 => "one more may fail".to_owned(),
        more => format!("{more} more may fail"),
    };
    let levels = match newest.level == newest.level_known {
        true => format!("feature level {}", newest.level),
        false => format!("feature level {} of {}", newest.level, newest.level_known),
    };
    let epoch = if newest.epoch > 0 { format!(", epoch {}", newest.epoch) } else { String::new() };
    format!("cluster {}: {leader}, {present} of {voters} voters answer, {outlook}, {levels}{epoch}", newest.cluster_id)
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

fn row(member: &MemberStatus, furthest: u64) -> Vec<String> {
    let id = member.node_id.map_or("-".into(), |id| id.to_string());
    let Ok(status) = &member.status else { return vec![id, member.address.clone(), "no answer".into()] };
    vec![
        id,
        member.address.clone(),
        role(status.role).into(),
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
