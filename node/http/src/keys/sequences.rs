//! `/v1/sequences/{name}`: numbers that are given once each.
//!
//! Owns the reading of the body and the answers. The names are those of `quorate_api::SequenceRequest`.

use quorate_api::{Problem, SequenceAnswer, SequenceNext, SequenceRequest};
use quorate_machine::limits::NUMBERS_MAX;
use quorate_machine::rules::SequenceName;
use quorate_machine::types::{Action, NumbersOp, Outcome as Decided, Reply};
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::decide::decide;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::{propose, text};
use utoipa_axum::routes;

use crate::command;
use crate::context::Context;
use crate::described::{Common, NamePath, Reused};
use crate::input::extract::Faults;
use crate::input::json_body::JsonOrNone;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    const POINT: Policy = Policy::data(RequestClass::Point);
    Routes::new().add(POINT, routes!(get)).add(POINT, routes!(post))
}

/// Shows the last number that a sequence gave. One that nobody ever drew from has given 0.
#[utoipa::path(get, path = "/v1/sequences/{name}", tag = "collections", operation_id = "sequence",
    params(NamePath),
    responses(
        (status = 200, description = "The last number given.", body = SequenceAnswer, example = json!({"name": "orders", "value": 42, "revision": "20", "index": 31})),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let name = name_of(context.name())?;
    context.admit_read(&requirement::on_name(Permission::Read, name.as_str().as_bytes())).await?;
    let (at, value) = context.api.node.last_number(&name).map_err(|fault| Failure::from_fault(&fault))?;
    let answer = SequenceAnswer { name: name.to_string(), value, revision: at.revision, index: at.index };
    command::answer(&answer, at.revision, None)
}

/// Takes the next numbers of a sequence. None is left out and none given twice, whoever else draws: fields of collections with
/// `sequence` do, too. Without a body it is one number.
#[utoipa::path(post, path = "/v1/sequences/{name}", tag = "collections", operation_id = "next_numbers",
    params(NamePath),
    request_body(content = SequenceRequest, content_type = "application/json", example = json!({"count": 10, "request_id": "numbers-1"})),
    responses(
        (status = 200, description = "The numbers from `first` to `last`.", body = SequenceNext, example = json!({"name": "orders", "first": 43, "last": 52, "revision": "21", "index": 33})),
        (status = 507, description = "`quota_exceeded`: the quota is used up or a disk nearly full; deletes still work.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn post(context: Context, JsonOrNone(request): JsonOrNone<SequenceRequest>) -> Outcome {
    let name = name_of(context.name())?;
    let mut faults = Faults::default();
    let count = faults.within("/count", Some(request.count.unwrap_or(1)), 1..=NUMBERS_MAX.into());
    // Bounded in the line before.
    let count = context.with_request_id(request.request_id, faults.complete(count))?;
    let op = NumbersOp { name: name.clone(), count: count as u32 };
    let reply = decide(&context, Action::Numbers(op), false).await?;
    let Reply { revision, index, replayed, .. } = reply;
    match &reply.outcome {
        Decided::Numbers { first, last } => {
            let answer = SequenceNext { name: name.to_string(), first: *first, last: *last, revision, index, replayed };
            command::answer(&answer, revision, None)
        }
        Decided::Rejected(why) => Err(Failure::from_rejection(name.as_str(), &reply, why)),
        _ => Err(propose::confused(&reply)),
    }
}

/// The name in the rest of a path: all of it, slashes too.
fn name_of(rest: &str) -> Result<SequenceName, Failure> {
    let text = text::percent_decode(rest).map_err(|why| Failure::invalid("path:name", why))?;
    SequenceName::new(text).map_err(|why| Failure::invalid("path:name", why.to_string()))
}
