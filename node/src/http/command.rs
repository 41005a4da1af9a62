//! Commands that are not about one entry: from a body to the reply of the cluster.
//!
//! Owns what changes of all that matches, claims, collections and sequences have in common as requests. Never knows what
//! one of them is about.

use std::ops::RangeInclusive;

use bytes::Bytes;
use http::header;
use hyper::body::Incoming;
use quorate_store::codec;
use quorate_store::limits::COMMAND_BYTES_MAX;
use quorate_store::types::{Action, Command, Rejection, Reply, RequestId, Revision};
use serde_json::value::RawValue;

use super::ask::Ask;
use super::error::{Effect, Failure};
use super::extract::{Faults, Query};
use super::headers::decimal;
use super::scan::scan;
use super::{Backend, Outcome, body, headers, json, kv, ok_json, read};
use crate::app::{AppError, Consistency};

/// The body of a request that has no parameters: `what`, as strict JSON.
pub async fn text<B: Backend>(ask: &mut Ask<'_, B>, body: Incoming, what: &str) -> Result<Bytes, Failure> {
    Query::parse(ask.head.uri.query()).finish("none")?;
    let kind = headers::json_kind(ask.head, what)?;
    let body = body::collect(ask, body, usize::MAX).await?;
    Ok(body.slice_ref(kv::json_of(kind, &body)?))
}

/// The fields of an object, in the order of `names`; `what` it is, for people. `None` where it is no object.
pub fn object<'a, const N: usize>(
    text: &'a [u8],
    what: &str,
    names: [&str; N],
    faults: &mut Faults,
) -> Option<[Option<&'a RawValue>; N]> {
    let Ok(list) = json::fields(text) else {
        faults.add("", format!("{what} is a JSON object"));
        return None;
    };
    let mut fields = [None; N];
    for (name, raw) in list {
        match names.iter().position(|known| *known == name) {
            Some(at) => fields[at] = Some(raw),
            None => {
                let detail = format!("no such field in {what}; there are: {}", names.join(", "));
                faults.add_unknown(json::pointer(&name), detail);
            }
        }
    }
    Some(fields)
}

/// A whole number within bounds.
pub fn whole(raw: &RawValue, pointer: &str, bounds: RangeInclusive<u32>, faults: &mut Faults) -> Option<u32> {
    let number = decimal(raw.get()).and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|number| bounds.contains(number));
    if number.is_none() {
        faults.add(pointer, format!("must be a whole number from {} to {}", bounds.start(), bounds.end()));
    }
    number
}

/// Has the cluster decide, or only evaluates what it would come to.
pub async fn decide<B: Backend>(ask: &Ask<'_, B>, action: Action, dry_run: bool) -> Result<Reply, Failure> {
    if dry_run {
        return evaluate(ask, action).await;
    }
    let request_id = Some(RequestId(ask.request_id.clone()));
    let command = Command { request_id, principal: String::new(), action };
    let decided = ask.api.backend.write(command, ask.deadline).await;
    decided.map_err(|error| Failure::from_app(error, Effect::Write))
}

/// A dry run is a linearizable read of what the command would do. It has no request id: nothing is kept of it. It may look
/// at many entries, so it holds up nobody else.
async fn evaluate<B: Backend>(ask: &Ask<'_, B>, action: Action) -> Result<Reply, Failure> {
    let command = Command { request_id: None, principal: String::new(), action };
    let actual = codec::encode_command(&command).len();
    if actual > COMMAND_BYTES_MAX {
        return Err(Failure::from_app(AppError::TooLarge { actual, limit: COMMAND_BYTES_MAX }, Effect::Read));
    }
    read::barrier(&ask.api.backend, Consistency::Linearizable, ask.deadline).await?;
    scan(ask, move |backend| backend.dry_run(&command)).await
}

/// The reply is not of the kind of what was asked.
pub fn confused(reply: &Reply) -> Failure {
    Failure::from_rejection("", reply, &Rejection::Unsupported("it was answered as something else".into()))
}

/// A 200 that was evaluated at `revision`, about what has this token now.
pub fn answer<T: serde::Serialize>(answer: &T, revision: Revision, cas: Option<u64>) -> Outcome {
    let mut response = ok_json(answer)?;
    response.headers_mut().insert(headers::REVISION, revision.into());
    if let Some(cas) = cas {
        response.headers_mut().insert(header::ETAG, headers::etag_value(cas));
    }
    Ok(response)
}
