//! Commands that are decided, or only tried.
//!
//! Owns the choice between the two. Never knows what a command is about.

use quorate_machine::types::{Action, Reply, RequestId};

use crate::gateway::admission::request_class::RequestClass;
use crate::gateway::auth::requirement;
use crate::gateway::call::Call;
use crate::gateway::failure::Failure;
use crate::gateway::propose;
use crate::gateway::scan::{evaluate, scan};

/// Has the cluster decide, or only evaluates what it would come to: a linearizable read, which may look at many entries and
/// so holds up nobody else.
pub async fn decide(call: &Call, action: Action, dry_run: bool) -> Result<Reply, Failure> {
    if !dry_run {
        // The few places of scans in the log bound what those show. A scan that waited for room in such a place would keep the place from all
        // others, and one that waited for a place with room would keep the room from commands that are no scans.
        if call.permit.class() != RequestClass::Scan {
            call.take_values_room(action.values_asked(), &requirement::on_action(&action)).await?;
        }
        return propose::propose(&call.caller(), action, RequestId(call.request_id()), call.deadline).await;
    }
    call.only_looks();
    call.admit_read(&requirement::on_action(&action)).await?;
    let command = propose::rehearsal(call.who().name(), action)?;
    match call.permit.class() {
        RequestClass::Scan => scan(call, move |backend| backend.dry_run(&command)).await,
        _ => evaluate(call, move |backend| backend.dry_run(&command)).await,
    }
}
