//! The door: who asks, and whether they may.
//!
//! Owns every decision about that, one point for reads ([`Visitor::check`]) and one for commands ([`Visitor::admit`]); what a kind of
//! command demands stands in `quorate_store::access`. With authentication off it looks at nothing and costs nothing.
//!
//! A refusal is said of the newest rules: a node that is behind asks the leader how far it has to come before it says no. Tokens
//! and rights are remembered as of one access revision, so nothing that was taken away is remembered for longer than this node
//! takes to hear of it; and a command carries that revision into the log, where another one refuses it.

mod audit;
mod known;
mod proof;
mod root;
mod throttle;
mod visitor;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use http::StatusCode;
use quorate_api::{Applied, ErrorCode};
use quorate_store::types::{Action, ROOT};

pub use audit::{AuditFile, AuditSamples, Event, Names};
pub use quorate_store::access::{Demand, Need, Permission, Visit};
pub use root::RootToken;
pub use visitor::{Pass, Visitor, Wanted, Watching};

use super::error::Failure;
use super::read;
use super::routes::Guard;
use crate::http::context::RequestContext;
use crate::http::response::Answer;
use known::Memory;
use proof::Proof;
use throttle::Throttle;

/// Who has to say who they are.
#[derive(Debug, Clone, Default)]
pub enum DoorSettings {
    /// Nobody.
    #[default]
    Open,
    /// Whoever asks for more than whether the node lives.
    Guarded {
        /// The token of `root`, if there is one.
        root: Option<Arc<RootToken>>,
    },
}

/// The door of a node.
#[derive(Debug)]
pub struct Door {
    settings: DoorSettings,
    memory: Memory,
    throttle: Throttle,
    audit: Option<Arc<AuditFile>>,
}

/// Who asks.
#[derive(Debug, Clone)]
pub enum Who {
    /// Anybody: authentication is off.
    Anybody,
    /// Nobody who said who they are. Served where no more is told than whether the node lives.
    Nobody,
    /// Somebody who proved to be who they are.
    Somebody(Arc<Somebody>),
}

/// Somebody who proved to be who they are. Whether the proof still holds is asked each time.
#[derive(Debug)]
pub struct Somebody {
    name: Arc<str>,
    proof: Proof,
}

impl Somebody {
    /// The name of the user.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }
}

impl Who {
    /// Whether nothing is kept from them, whatever the rules are.
    pub fn may_see_all(&self) -> bool {
        match self {
            Self::Anybody => true,
            Self::Nobody => false,
            Self::Somebody(somebody) => *somebody.name == *ROOT,
        }
    }

    /// The name of the user; empty where there is none.
    pub fn name(&self) -> &str {
        match self {
            Self::Anybody | Self::Nobody => "",
            Self::Somebody(somebody) => &somebody.name,
        }
    }
}

impl Door {
    /// One with these settings. Writes, refusals and administration are told to `audit`.
    pub fn new(settings: DoorSettings, audit: Option<Arc<AuditFile>>) -> Self {
        Self { settings, memory: Memory::default(), throttle: Throttle::default(), audit }
    }

    /// Whether nobody has to say who they are.
    pub fn is_open(&self) -> bool {
        matches!(self.settings, DoorSettings::Open)
    }

    /// Whether this is the token of `root`.
    fn is_root(&self, hash: &quorate_store::types::SecretHash) -> bool {
        match &self.settings {
            DoorSettings::Guarded { root: Some(root) } => root.is(hash),
            DoorSettings::Guarded { root: None } | DoorSettings::Open => false,
        }
    }

    /// Notes something for the audit log. The event is only made where there is one.
    pub fn note(&self, event: impl FnOnce() -> Option<Event>) {
        if let Some(audit) = &self.audit
            && let Some(event) = event()
        {
            audit.take(&event);
        }
    }

    /// Whether there is an audit log.
    pub fn notes(&self) -> bool {
        self.audit.is_some()
    }

    /// That an address has to wait, if it has.
    fn too_often(&self, from: IpAddr) -> Result<(), Failure> {
        match self.throttle.wait(from, Instant::now()) {
            None => Ok(()),
            Some(left) => Err(Failure::too_many("too many failed authentications from this address").after(left)),
        }
    }

    /// A request of which it cannot be told who asks.
    fn unknown(&self, from: IpAddr, why: &str) -> Failure {
        if let Err(failure) = self.too_often(from) {
            return failure;
        }
        self.throttle.failed(from, Instant::now());
        unauthenticated(why)
    }
}

/// Lets a request in: tells who asks, and whether they may ask for a route of which that alone decides.
pub async fn enter(context: &RequestContext) -> Result<(), Failure> {
    let door = &context.api.door;
    if door.is_open() {
        return Ok(());
    }
    let guard = context.policy.guard;
    context.identify(match guard {
        Guard::None => Who::Nobody,
        Guard::Known | Guard::Admin | Guard::Judged => identify(context).await?,
    });
    if guard == Guard::Admin {
        let everything = |visit: &mut Visit<'_>| visit(Demand::Need(Need::Prefix(Permission::Admin, b"")));
        context.visitor().admit(context.deadline, &everything).await?;
    }
    Ok(())
}

/// Who asks. A proof that this node does not know may be newer than what it has applied.
async fn identify(context: &RequestContext) -> Result<Who, Failure> {
    let (door, from) = (&context.api.door, context.origin.address.ip());
    let proof = match Proof::of(&context.head, &context.origin) {
        Ok(Some(proof)) => proof,
        Ok(None) => {
            return Err(door.unknown(from, "the request does not say who asks; send `Authorization: Bearer TOKEN`"));
        }
        Err(why) => return Err(door.unknown(from, why)),
    };
    let backend = &context.api.backend;
    let first = door.prove(backend, &proof)?;
    let proved = match first {
        Err(doubt) if doubt.may_be_behind => {
            read::refresh(backend, context.deadline).await?;
            door.prove(backend, &proof)?
        }
        other => other,
    };
    match proved {
        Ok(person) => Ok(Who::Somebody(Arc::new(Somebody { name: person.name.clone(), proof }))),
        Err(doubt) => Err(door.unknown(from, doubt.why)),
    }
}

/// Tells the audit log of an operation of a stream that was refused.
pub fn note_refused(visitor: &Visitor<'_>, status: StatusCode, request_id: &str) {
    let status = status.as_u16();
    if matches!(status, 401 | 403) {
        visitor.api.door.note(|| Some(Event::refused(visitor, status, request_id)));
    }
}

/// A right on one name.
pub fn on_name(permission: Permission, name: &[u8]) -> impl Fn(&mut Visit<'_>) + Sync {
    move |visit| visit(Demand::Need(Need::Name(permission, name)))
}

/// A right on all names with a prefix.
pub fn on_prefix(permission: Permission, prefix: &[u8]) -> impl Fn(&mut Visit<'_>) + Sync {
    move |visit| visit(Demand::Need(Need::Prefix(permission, prefix)))
}

/// A right on a range of names.
pub fn on_range<'a>(
    permission: Permission,
    start: &'a [u8],
    end: Option<&'a [u8]>,
) -> impl Fn(&mut Visit<'_>) + Sync + 'a {
    move |visit| visit(Demand::Need(Need::Range(permission, start, end)))
}

/// What a command demands.
pub fn on_action(action: &Action) -> impl Fn(&mut Visit<'_>) + Sync {
    move |visit| action.demands(visit)
}

/// That it is not known who asks.
fn unauthenticated(why: &str) -> Failure {
    Failure::new(ErrorCode::Unauthenticated, Applied::No, why)
}

/// Tells the audit log of a request that was refused, or that was about the cluster itself.
pub fn note_answered(context: &RequestContext, response: &Answer, request_id: &str) {
    let status = response.status().as_u16();
    // Who is told to come later is many, and may be anybody: lines about them would hide the others.
    let is_refused = matches!(status, 401 | 403);
    if !context.api.door.notes() || !(is_refused || context.policy.guard == Guard::Admin) {
        return;
    }
    let path = context.head.uri.path();
    context
        .api
        .door
        .note(|| Some(Event::answered(&context.visitor(), context.head.method.as_str(), path, status, request_id)));
}
