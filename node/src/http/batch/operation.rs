//! One operation, from a checked body to what it came to.
//!
//! Owns the choice between a read and a write. Never reads a request.

use crate::http::keys::op_body::ParsedOp;
use crate::http::keys::write::Manner;
use quorate_store::types::Step;
use std::time::Instant;

use crate::gateway::auth::caller::Caller;
use crate::gateway::failure::Failure;
use crate::http::keys::{read, write};
use crate::http::output::completed::Completed;

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
        Step::Write(op) => write::perform(caller, &key.text, op, manner, request_id, deadline).await,
        Step::Get(_) | Step::Txn(_) => read::perform(caller, &key, deadline).await,
    }
}
