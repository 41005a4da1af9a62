//! `/v1/cluster/faults`: what the cluster met and contained, and what an operator does about it.
//!
//! Owns the reading of the body and the answers. Never decides what a fault becomes; that is the state machine's.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use quorate_api::{FaultedCommand, FaultsAnswer, FaultsReply, FaultsRequest, FaultsVerb, ParkedWork, Problem};
use quorate_machine::document::time;
use quorate_machine::keyspace::family;
use quorate_machine::query::{FaultsRead, KeptFault, Parked};
use quorate_machine::types::{Action, FaultsOp, Outcome as Decided, Reply};
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::propose;
use quorate_threads::background;
use utoipa_axum::routes;

use crate::command;
use crate::context::Context;
use crate::described::{Common, Reused};
use crate::input::json_body::Json;
use crate::output::response::{Outcome, ok_json};
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const ADMIN: Policy = Policy::node(Guard::Admin);
    Routes::new().add(ADMIN, routes!(get)).add(ADMIN, routes!(post))
}

/// Shows what was contained. Local: never waits, works without a leader.
#[utoipa::path(get, path = "/v1/cluster/faults", tag = "cluster", operation_id = "faults",
    responses((status = 200, description = "Commands that faulted, and work that is set aside. Each is a bug: report it with what is shown here.", body = FaultsAnswer, example = json!({"commands": 0, "parked": 0, "kept": [], "work": []})), Common))]
pub async fn get(context: Context) -> Outcome {
    // Thirty commands of a quarter of a megabyte take longer than others may wait.
    background::in_place(usize::MAX, || {
        let read = context.api.node.faults().map_err(|fault| Failure::from_fault(&fault))?;
        let FaultsRead { counts, commands, parked } = read;
        let kept = commands.into_iter().map(kept_view).collect();
        let work = parked.into_iter().map(parked_view).collect();
        ok_json(&FaultsAnswer { commands: counts.commands, parked: counts.parked, kept, work })
    })
}

/// Has work that was set aside tried again or given up, or forgets the commands that are kept.
#[utoipa::path(post, path = "/v1/cluster/faults", tag = "cluster", operation_id = "handle_faults",
    request_body(content = FaultsRequest, content_type = "application/json", example = json!({"verb": "forget"})),
    responses(
        (status = 200, description = "It is done. Work that faults again is set aside again.", body = FaultsReply, example = json!({"count": 0, "revision": "23", "index": 35})),
        (status = 404, description = "`not_found`: no such work is set aside.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn post(context: Context, Json(request): Json<FaultsRequest>) -> Outcome {
    let op = checked(&request);
    let op = context.with_request_id(request.request_id, op)?;
    let reply = decide(&context, Action::Faults(op), false).await?;
    let Reply { revision, index, replayed, .. } = reply;
    match &reply.outcome {
        Decided::Maintained { removed, .. } => {
            command::answer(&FaultsReply { count: *removed, revision, index, replayed }, revision, None)
        }
        Decided::Rejected(why) => Err(Failure::from_rejection("work that is set aside", &reply, why)),
        _ => Err(propose::confused(&reply)),
    }
}

/// What to do, as the log has it.
fn checked(request: &FaultsRequest) -> Result<FaultsOp, Failure> {
    let no_such_work = || Failure::invalid("/work", "must be `work` of something that GET shows");
    let work = request.work.as_deref().map(|text| from_hex(text).ok_or_else(no_such_work)).transpose()?;
    match (request.verb, work) {
        (FaultsVerb::Retry, Some(work)) => Ok(FaultsOp::Retry(work)),
        (FaultsVerb::Drop, Some(work)) => Ok(FaultsOp::Drop(work)),
        (FaultsVerb::Forget, None) => Ok(FaultsOp::Forget),
        (FaultsVerb::Retry | FaultsVerb::Drop, None) => Err(Failure::invalid("/work", "must say which work")),
        (FaultsVerb::Forget, Some(_)) => Err(Failure::invalid("/work", "is not for `forget`, which is about commands")),
    }
}

fn kept_view(fault: KeptFault) -> FaultedCommand {
    let KeptFault { index, nth, row } = fault;
    FaultedCommand {
        index,
        number: nth,
        revision: row.revision,
        cluster_clock_ms: row.clock,
        at: time::format(row.wall),
        level: row.level,
        command: BASE64.encode(&row.command),
    }
}

fn parked_view(Parked { work, row }: Parked) -> ParkedWork {
    let (kind, subject) = match work.split_first() {
        Some((family, subject)) => (kind_of(*family), subject),
        None => ("unknown", &[][..]),
    };
    ParkedWork {
        kind: kind.to_owned(),
        subject: subject.escape_ascii().to_string(),
        index: row.index,
        revision: row.revision,
        at: time::format(row.wall),
        work: to_hex(&work),
    }
}

/// What work a row stands for.
fn kind_of(family: u8) -> &'static str {
    match family {
        family::TIMER => "timer",
        family::DEADLINE => "expiry",
        family::LOCK => "end of a lock on an entry",
        family::AUDIT => "compaction",
        family::LOCK_HEAD => "grant of a lock",
        family::TASK_UNPLANNED => "planning of a task",
        family::COLLECTION => "rules of a collection",
        family::DROPPED_INDEX => "clearing of an index",
        family::SESSION => "sum of a session",
        family::ATTACHED => "end of a session",
        _ => "unknown",
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if text.is_empty() || !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_work_leads_back_to_it() {
        let work: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&work)), Some(work));
        assert_eq!([from_hex(""), from_hex("7"), from_hex("7g"), from_hex("+7")], [None, None, None, None]);
    }
}
