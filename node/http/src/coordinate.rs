//! What requests have in common that name sessions, locks, elections, barriers or latches, or that list what has a name.
//!
//! Owns how names, sessions, tokens and pages are read, with a pointer to every fault, and the shape of their answers. Never
//! knows what one of them is about.

use std::time::Duration;

use http::StatusCode;
use quorate_machine::document::time;
use quorate_machine::types::{Guard, LockName, LockSpace, Name, Revision, SessionId, WallMillis};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::text;
use quorate_node_core::limits;

use crate::command;
use crate::context::RequestContext;
use crate::headers::decimal;
use crate::input::extract::{Faults, Query};
use crate::output::response::Outcome;

/// The name in a path.
pub fn name_of(rest: &str) -> Result<Name, Failure> {
    let text = text::percent_decode(rest).map_err(|why| Failure::invalid("path:name", why))?;
    Name::new(text).map_err(|why| Failure::invalid("path:name", why.to_string()))
}

/// The session in a path.
pub fn session_of(rest: &str) -> Result<SessionId, Failure> {
    let text = text::percent_decode(rest).map_err(|why| Failure::invalid("path:session", why))?;
    decimal(&text).map(SessionId).ok_or_else(|| Failure::invalid("path:session", NOT_A_SESSION))
}

const NOT_A_SESSION: &str = "must be the id of a session: a decimal number in a string";

/// A session in a body; `None` where that is a fault.
pub fn session(text: &str, pointer: &str, faults: &mut Faults) -> Option<SessionId> {
    let id = decimal(text).map(SessionId);
    if id.is_none() {
        faults.add(pointer, NOT_A_SESSION);
    }
    id
}

/// A token that a write depends on, in a body; `None` where that is a fault.
pub fn guard(guard: &quorate_api::Guard, faults: &mut Faults) -> Option<Box<Guard>> {
    let (space, name, pointer) = match (&guard.lock, &guard.election) {
        (Some(name), None) => (LockSpace::Lock, name, "/guard/lock"),
        (None, Some(name)) => (LockSpace::Election, name, "/guard/election"),
        _ => {
            faults.add("/guard", "needs the name of a `lock` or of an `election`, one of the two");
            return None;
        }
    };
    let name = named(name, pointer, faults)?;
    Some(Box::new(Guard { lock: LockName { space, name }, token: guard.token }))
}

fn named(text: &str, pointer: &str, faults: &mut Faults) -> Option<Name> {
    let name = Name::new(text);
    if let Err(why) = &name {
        faults.add(pointer, why.to_string());
    }
    name.ok()
}

/// `poll_ms`: after how long a request that waits is answered although the wait is not over.
pub fn poll(poll_ms: Option<u64>, faults: &mut Faults) -> Duration {
    let poll = faults.within("/poll_ms", poll_ms, 0..=limits::WAIT_MS_MAX);
    Duration::from_millis(poll.unwrap_or(limits::POLL_MS_DEFAULT))
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

/// `limit` and `cursor` of a list whose items have a name.
pub fn page_of<T>(
    context: &RequestContext,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<(usize, Option<T>), Failure> {
    let mut query = Query::parse(context.head.uri.query());
    let (limit, after) = (query.page_limit(limits::LIST_ENTRIES_DEFAULT), query.cursor(read));
    query.finish()?;
    Ok((limit, after))
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
