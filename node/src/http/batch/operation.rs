//! One operation, from a checked body to what it came to.
//!
//! Owns the choice between a read and a write. Never reads a request.

use crate::http::keys::op_body::OpWish;
use crate::http::keys::write::Manner;
use quorate_store::types::Step;
use std::time::Instant;

use quorate_api::OpKind;

use crate::http::auth::visitor::Visitor;
use crate::http::keys::{read, write};
use crate::http::output::done::Done;
use crate::http::problem::Failure;

/// Executes a checked operation.
pub async fn perform(
    visitor: &Visitor<'_>,
    wish: OpWish<'_>,
    request_id: &str,
    deadline: Instant,
) -> Result<Done, Failure> {
    let manner = Manner { dry_run: wish.dry_run, shows_entry: wish.kind == OpKind::GetAndTouch };
    let key = wish.key.clone();
    match wish.into_step() {
        Step::Write(op) => write::perform(visitor, &key.text, op, manner, request_id, deadline).await,
        Step::Get(_) | Step::Txn(_) => read::perform(visitor, &key, deadline).await,
    }
}
