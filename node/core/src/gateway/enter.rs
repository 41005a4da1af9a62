//! Letting requests in, and telling the audit log of those that were not.
//!
//! Owns the order: it identifies the caller, then checks as much as the head alone decides. Routes that serve data refuse callers without any
//! right before their bodies are read. A refusal follows the newest rules: a node that is behind asks the leader how far it has to come before it
//! refuses. If authentication is off, it looks at nothing and costs nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};

use crate::gateway::admission::paced::hold_awake;
use crate::gateway::audit_event::Event;
use crate::gateway::auth::guard::Guard;
use crate::gateway::auth::known::Person;
use crate::gateway::auth::proof::Proof;
use crate::gateway::auth::requirement::{RequiredPermission, Requirement, Visit};
use crate::gateway::auth::who::{Somebody, Who};
use crate::gateway::call::Call;
use crate::gateway::caller::Caller;
use crate::gateway::failure::Failure;
use crate::gateway::freshness::refresh;

/// Longest wait of a caller that this node does not know, or has no right of. Every node learns new ones within milliseconds, as long as there is
/// a leader.
const STRANGER_WAIT: Duration = Duration::from_secs(2);

/// Lets a request in: tells who asks, and whether they may ask for a route of which that alone decides.
pub async fn enter(call: &Call, headers: &HeaderMap, guard: Guard) -> Result<(), Failure> {
    let authenticator = &call.api.auth;
    if authenticator.is_open() {
        return Ok(());
    }
    if guard == Guard::None {
        call.identify(Who::Nobody);
        return Ok(());
    }
    let (who, person) = somebody(call, headers).await?;
    call.identify(who);
    if let Some(permission) = guard.permission() {
        let everything =
            |visit: &mut Visit<'_>| visit(Requirement::Permission(RequiredPermission::Prefix(permission, b"")));
        call.caller().admit(call.deadline, &everything).await?;
    }
    if guard == Guard::Judged && person.rights.grants().is_empty() {
        check_any_right(call, &person).await?;
    }
    Ok(())
}

/// Refuses callers without any right, so that nothing is read or taken for requests that are refused in any case. A right may be newer than the
/// state that this node has applied: it asks the leader whether it is behind, for few requests at a time, fewer of one user, and not for long.
async fn check_any_right(call: &Call, person: &Person) -> Result<(), Failure> {
    let _asking = (call.api.auth.ask_for_rightless(&person.name)?, hold_awake());
    refresh(&call.api.node, call.deadline.min(Instant::now() + STRANGER_WAIT)).await?;
    call.caller().check(&|visit: &mut Visit<'_>| visit(Requirement::Something))
}

/// Identifies the caller.
pub async fn identify(call: &Call, headers: &HeaderMap) -> Result<Who, Failure> {
    Ok(somebody(call, headers).await?.0)
}

/// Identifies the caller, with the rights that this node knows. A proof that it does not know may be newer than the state it has applied.
async fn somebody(call: &Call, headers: &HeaderMap) -> Result<(Who, Arc<Person>), Failure> {
    let (authenticator, from) = (&call.api.auth, call.origin.neighbour());
    let proof = match Proof::of(headers, &call.origin) {
        Ok(Some(brought)) => authenticator.proof(brought, from).await?,
        Ok(None) => return Err(authenticator.missing(from)),
        Err(why) => return Err(authenticator.unknown(from, why)),
    };
    let backend = &call.api.node;
    let first = authenticator.prove(backend, &proof)?;
    let proved = match first {
        Err(doubt) if doubt.may_be_behind => {
            // Of strangers a node asks the leader little: not for an address that guesses, for few at a time, and not for long.
            let _asking = (authenticator.ask_for_stranger(from)?, hold_awake());
            refresh(backend, call.deadline.min(Instant::now() + STRANGER_WAIT)).await?;
            authenticator.prove(backend, &proof)?
        }
        other => other,
    };
    match proved {
        Ok(person) => {
            call.prove_person(&person.name);
            Ok((Who::Somebody(Arc::new(Somebody { name: person.name.clone(), proof })), person))
        }
        Err(doubt) => Err(authenticator.unknown(from, doubt.why)),
    }
}

/// Tells the audit log of an operation of a stream that was refused.
pub fn note_refused(caller: &Caller<'_>, status: StatusCode, request_id: &str) {
    let status = status.as_u16();
    if status == 403 {
        caller.api.auth.count_refused();
    }
    if matches!(status, 401 | 403) {
        caller.api.auth.note(|| Some(Event::refused(caller, status, request_id)));
    }
}

/// Tells the audit log of a request that was refused, or that was about the cluster itself.
pub fn note_answered(call: &Call, guard: Guard, method: &str, path: &str, status: StatusCode, request_id: &str) {
    let (authenticator, status) = (&call.api.auth, status.as_u16());
    if status == 403 {
        authenticator.count_refused();
    }
    // Who is told to come later is many, and may be anybody: lines about them would hide the others.
    let is_refused = matches!(status, 401 | 403);
    if authenticator.notes() && (is_refused || guard.is_noted()) {
        authenticator.note(|| Some(Event::answered(&call.caller(), method, path, status, request_id)));
    }
}
