//! What requests about sessions, locks, elections, barriers and latches have in common.
//!
//! Owns how their names, sessions and tokens are read, with a pointer to every fault, and the shape of their answers. Never
//! knows what one of them is about.

use std::ops::RangeInclusive;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use hyper::body::Body as _;
use quorate_store::document::time;
use quorate_store::types::{Guard, LockName, LockSpace, Name, Revision, SessionId, WallMillis};
use serde_json::value::RawValue;

use super::context::RequestContext;
use super::error::Failure;
use super::extract::{Faults, Query};
use super::headers::decimal;
use super::response::Outcome;
use super::{command, extract, json, key, op_body};
use crate::limits;

/// The name in a path.
pub fn name_of(rest: &str) -> Result<Name, Failure> {
    let text = key::percent_decode(rest).map_err(|why| Failure::invalid("path:name", why))?;
    Name::new(text).map_err(|why| Failure::invalid("path:name", why.to_string()))
}

/// The session in a path.
pub fn session_of(rest: &str) -> Result<SessionId, Failure> {
    let text = key::percent_decode(rest).map_err(|why| Failure::invalid("path:session", why))?;
    decimal(&text).map(SessionId).ok_or_else(|| Failure::invalid("path:session", NOT_A_SESSION))
}

const NOT_A_SESSION: &str = "must be the id of a session: a decimal number in a string";

/// A session in a body.
pub fn session(raw: &RawValue, pointer: &str, faults: &mut Faults) -> Option<SessionId> {
    let id = json::text(raw).and_then(|text| decimal(&text)).map(SessionId);
    if id.is_none() {
        faults.add(pointer, NOT_A_SESSION);
    }
    id
}

/// The same of one that must be there.
pub fn needed_session(raw: Option<&RawValue>, faults: &mut Faults) -> Option<SessionId> {
    match raw {
        Some(raw) => session(raw, "/session", faults),
        None => {
            faults.add("/session", "missing; the id of the session that it is for");
            None
        }
    }
}

/// A token, a term or a place: a number, or one in a string.
pub fn token(raw: &RawValue, pointer: &str, faults: &mut Faults) -> Option<Revision> {
    let token = decimal(raw.get()).or_else(|| json::text(raw).and_then(|text| decimal(&text)));
    if token.is_none() {
        faults.add(pointer, "must be the number of an answer");
    }
    token
}

/// A token that a write depends on, in a body.
pub fn guard(raw: &RawValue, faults: &mut Faults) -> Option<Box<Guard>> {
    let before = faults.enter(format_args!("/guard"));
    let guard = read_guard(raw, faults);
    faults.leave(before);
    guard
}

fn read_guard(raw: &RawValue, faults: &mut Faults) -> Option<Box<Guard>> {
    let [lock, election, number] =
        extract::object(raw.get().as_bytes(), "a guard", ["lock", "election", "token"], faults)?;
    let (space, name, pointer) = match (lock, election) {
        (Some(name), None) => (LockSpace::Lock, name, "/lock"),
        (None, Some(name)) => (LockSpace::Election, name, "/election"),
        _ => {
            faults.add("", "needs the name of a `lock` or of an `election`, one of the two");
            return None;
        }
    };
    let name = op_body::text(name, pointer, faults).and_then(|text| named(&text, pointer, faults));
    let token = match number {
        Some(raw) => token(raw, "/token", faults),
        None => {
            faults.add("/token", "missing; the fencing token, or the term");
            None
        }
    };
    Some(Box::new(Guard { lock: LockName { space, name: name? }, token: token? }))
}

fn named(text: &str, pointer: &str, faults: &mut Faults) -> Option<Name> {
    let name = Name::new(text);
    if let Err(why) = &name {
        faults.add(pointer, why.to_string());
    }
    name.ok()
}

/// The session that an entry is to go with and the token that a write depends on, in a query.
pub fn of_query(query: &mut Query<'_>, takes_session: bool) -> (Option<SessionId>, Option<Box<Guard>>) {
    let session = if takes_session { query.text("session") } else { None };
    let session = session.and_then(|text| {
        let id = decimal(&text).map(SessionId);
        if id.is_none() {
            query.faults.add("query:session", NOT_A_SESSION);
        }
        id
    });
    let (lock, election) = (query.text("guard_lock"), query.text("guard_election"));
    let token = query.number("guard_token");
    let faults = &mut query.faults;
    let (space, name, pointer) = match (&lock, &election) {
        (Some(name), None) => (LockSpace::Lock, name, "query:guard_lock"),
        (None, Some(name)) => (LockSpace::Election, name, "query:guard_election"),
        (Some(_), Some(_)) => {
            faults.add("query:guard_election", "given beside guard_lock; choose one");
            return (session, None);
        }
        (None, None) => {
            if token.is_some() {
                faults.add("query:guard_token", "needs guard_lock or guard_election: of what it is the token");
            }
            return (session, None);
        }
    };
    let name = named(name, pointer, faults);
    if token.is_none() && !faults.has("query:guard_token") {
        faults.add("query:guard_token", "missing; the fencing token, or the term");
    }
    let guard = name.zip(token).map(|(name, token)| Box::new(Guard { lock: LockName { space, name }, token }));
    (session, guard)
}

/// A wait in milliseconds; none without the field.
pub fn wait(raw: Option<&RawValue>, pointer: &str, max: u64, faults: &mut Faults) -> Option<Duration> {
    let max = u32::try_from(max).expect("waits are bounded by days");
    let millis = raw.and_then(|raw| command::whole(raw, pointer, 0..=max, faults))?;
    Some(Duration::from_millis(millis.into()))
}

/// A wait as the log has it.
pub fn millis(wait: Option<Duration>) -> u64 {
    // Read from that many milliseconds, so it fits.
    wait.map_or(0, |wait| wait.as_millis() as u64)
}

/// A whole number within bounds, or what stands for it.
pub fn whole_or(
    raw: Option<&RawValue>,
    pointer: &str,
    bounds: RangeInclusive<u32>,
    usual: u32,
    faults: &mut Faults,
) -> u32 {
    raw.and_then(|raw| command::whole(raw, pointer, bounds, faults)).unwrap_or(usual)
}

/// The body of a request that may have none, which is as good as `{}`.
pub async fn text_or_none(context: &RequestContext, body: Body, what: &str) -> Result<Bytes, Failure> {
    match body.is_end_stream() {
        true => Query::parse(context.head.uri.query()).finish("none").map(|()| Bytes::from_static(b"{}")),
        false => command::text(context, body, what).await,
    }
}

/// The caller's request id in a body.
pub fn request_id(raw: Option<&RawValue>, faults: &mut Faults) -> Option<String> {
    raw.and_then(|raw| op_body::request_id(raw, faults)).map(|id| id.into_owned())
}

/// `limit` and `cursor` of a list whose items have a name.
pub fn page_of<T>(query: &mut Query<'_>, read: impl FnOnce(&str) -> Option<T>) -> Result<(usize, Option<T>), Failure> {
    let limit = query.number("limit").unwrap_or(limits::LIST_ENTRIES_DEFAULT as u64);
    if limit == 0 || limit > limits::LIST_ENTRIES_MAX as u64 {
        query.faults.add("query:limit", format!("out of range; give 1 to {}", limits::LIST_ENTRIES_MAX));
    }
    let after = query.text("cursor").and_then(|text| {
        let after = read(&text);
        if after.is_none() {
            query.faults.add("query:cursor", "not a cursor of this route; give back the one of the page before");
        }
        after
    });
    std::mem::take(query).finish("limit, cursor")?;
    // Bounded a few lines above.
    Ok((limit as usize, after))
}

/// An answer that is 200 once what was asked for has come, 202 while it is waited for.
pub fn answer<T: serde::Serialize>(body: &T, revision: Revision, has_come: bool) -> Outcome {
    let mut response = command::answer(body, revision, None)?;
    if !has_come {
        *response.status_mut() = StatusCode::ACCEPTED;
    }
    Ok(response)
}

/// A moment of wall clock as answers show it.
pub fn moment(wall: WallMillis) -> String {
    time::format(wall)
}
