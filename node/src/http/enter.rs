//! Letting requests in, and telling the audit log of those that were not.
//!
//! Owns the order: who asks, then whether they may. A refusal is said of the newest rules: a node that is behind asks the leader how
//! far it has to come before it says no. With authentication off it looks at nothing and costs nothing.

use std::sync::Arc;

use http::StatusCode;

use crate::gateway::auth::audit_event::Event;
use crate::gateway::auth::caller::Caller;
use crate::gateway::auth::proof::Proof;
use crate::gateway::auth::requirement::{Permission, RequiredPermission, Requirement, Visit};
use crate::gateway::auth::who::{Somebody, Who};
use crate::gateway::failure::Failure;
use crate::gateway::freshness::refresh;
use crate::http::context::RequestContext;
use crate::http::output::response::Answer;
use crate::http::routes::Guard;

/// Lets a request in: tells who asks, and whether they may ask for a route of which that alone decides.
pub async fn enter(context: &RequestContext) -> Result<(), Failure> {
    let authenticator = &context.api.authenticator;
    if authenticator.is_open() {
        return Ok(());
    }
    let guard = context.policy.guard;
    context.identify(match guard {
        Guard::None => Who::Nobody,
        Guard::Known | Guard::Admin | Guard::Judged => identify(context).await?,
    });
    if guard == Guard::Admin {
        let everything =
            |visit: &mut Visit<'_>| visit(Requirement::Permission(RequiredPermission::Prefix(Permission::Admin, b"")));
        context.caller().admit(context.deadline, &everything).await?;
    }
    Ok(())
}

/// Who asks. A proof that this node does not know may be newer than what it has applied.
async fn identify(context: &RequestContext) -> Result<Who, Failure> {
    let (authenticator, from) = (&context.api.authenticator, context.origin.address.ip());
    let proof = match Proof::of(&context.head.headers, &context.origin) {
        Ok(Some(proof)) => proof,
        Ok(None) => {
            return Err(
                authenticator.unknown(from, "the request does not say who asks; send `Authorization: Bearer TOKEN`")
            );
        }
        Err(why) => return Err(authenticator.unknown(from, why)),
    };
    let backend = &context.api.backend;
    let first = authenticator.prove(backend, &proof)?;
    let proved = match first {
        Err(doubt) if doubt.may_be_behind => {
            refresh(backend, context.deadline).await?;
            authenticator.prove(backend, &proof)?
        }
        other => other,
    };
    match proved {
        Ok(person) => Ok(Who::Somebody(Arc::new(Somebody { name: person.name.clone(), proof }))),
        Err(doubt) => Err(authenticator.unknown(from, doubt.why)),
    }
}

/// Tells the audit log of an operation of a stream that was refused.
pub fn note_refused(caller: &Caller<'_>, status: StatusCode, request_id: &str) {
    let status = status.as_u16();
    if matches!(status, 401 | 403) {
        caller.api.authenticator.note(|| Some(Event::refused(caller, status, request_id)));
    }
}

/// Tells the audit log of a request that was refused, or that was about the cluster itself.
pub fn note_answered(context: &RequestContext, response: &Answer, request_id: &str) {
    let status = response.status().as_u16();
    // Who is told to come later is many, and may be anybody: lines about them would hide the others.
    let is_refused = matches!(status, 401 | 403);
    if !context.api.authenticator.notes() || !(is_refused || context.policy.guard == Guard::Admin) {
        return;
    }
    let path = context.head.uri.path();
    context
        .api
        .authenticator
        .note(|| Some(Event::answered(&context.caller(), context.head.method.as_str(), path, status, request_id)));
}
