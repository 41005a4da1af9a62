//! One operation, from a checked body to what it came to.
//!
//! Owns the choice between a read and a write. Never reads a request.

use std::time::{Duration, Instant};

use quorate_machine::types::Step;
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::caller::Caller;
use quorate_node_core::gateway::entry_lock;
use quorate_node_core::gateway::failure::Failure;

use crate::keys::op_body::ParsedOp;
use crate::keys::write::Manner;
use crate::keys::{read, write};
use crate::output::completed::Completed;

/// Executes a checked operation.
pub async fn perform(
    caller: &Caller<'_>,
    parsed: ParsedOp,
    request_id: &str,
    deadline: Instant,
) -> Result<Completed, Failure> {
    let manner = Manner { dry_run: parsed.dry_run, shows_entry: parsed.shows_entry() };
    let key = parsed.key;
    match parsed.step {
        Step::Write(op) => write::perform(caller, &key, op, manner, request_id, deadline).await,
        Step::Get(_) | Step::Txn(_) | Step::List(_) | Step::Remove(_) | Step::Branch(_) => {
            read::perform(caller, &key, deadline).await
        }
    }
}

/// Executes an operation that locks, after a wait where somebody else holds the lock. For a request of its own.
pub async fn perform_in_turn(call: &Call, parsed: ParsedOp, wait: Duration) -> Result<Completed, Failure> {
    let manner = Manner { dry_run: false, shows_entry: parsed.shows_entry() };
    match parsed.step {
        Step::Write(op) => {
            let reply = entry_lock::lock(call, op, wait).await?;
            write::answer(&parsed.key, &reply, manner, false)
        }
        Step::Get(_) | Step::Txn(_) | Step::List(_) | Step::Remove(_) | Step::Branch(_) => {
            read::perform(&call.caller(), &parsed.key, call.deadline).await
        }
    }
}
