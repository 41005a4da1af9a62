//! The lines of the audit log: who did what, and who was refused.
//!
//! Owns what stands in a line. Never writes one.

use quorate_api::{Applied, Name};
use quorate_machine::access::RequiredPermission;
use quorate_machine::document::time;
use quorate_machine::types::{Outcome, Reply};
use serde::Serialize;

use crate::gateway::auth::requirement::{Requirement, Visit, Wanted};
use crate::gateway::caller::Caller;
use crate::gateway::failure::Failure;
use crate::gateway::rejection::rejection_code;
use crate::millis::wall_now;

/// Names in one line: a bulk may have thousands.
const NAMES_MAX: usize = 32;
/// Characters of a name or path.
const TEXT_CHARS_MAX: usize = 256;

/// One line.
#[derive(Debug, Serialize)]
pub struct Event {
    at: String,
    node: u64,
    /// The user; left out where nobody said who they are.
    #[serde(skip_serializing_if = "String::is_empty")]
    principal: String,
    from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
    route: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// What a command named, with the permission that it needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    /// How many more it named.
    #[serde(skip_serializing_if = "is_zero")]
    names_left_out: usize,
    request_id: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Event {
    fn new(caller: &Caller<'_>, request_id: &str, outcome: &'static str) -> Self {
        Self {
            at: time::format(wall_now()),
            node: caller.api.settings.node_id,
            principal: caller.who.name().to_owned(),
            from: caller.origin.address.to_string(),
            certificate: caller.origin.certificate.as_deref().map(str::to_owned),
            route: caller.route,
            method: None,
            path: None,
            names: Vec::new(),
            names_left_out: 0,
            request_id: request_id.to_owned(),
            outcome,
            code: None,
            status: None,
            revision: None,
            index: None,
            replayed: false,
        }
    }

    /// A request that was refused, or was about the cluster itself.
    pub fn answered(caller: &Caller<'_>, method: &str, path: &str, status: u16, request_id: &str) -> Self {
        let outcome = match status {
            401 | 403 | 429 => "refused",
            200..300 => "done",
            _ => "failed",
        };
        let (method, path) = (Some(method.to_owned()), Some(bounded(path)));
        Self { method, path, status: Some(status), ..Self::new(caller, request_id, outcome) }
    }

    /// An operation of a stream that was refused.
    pub fn refused(caller: &Caller<'_>, status: u16, request_id: &str) -> Self {
        Self { status: Some(status), ..Self::new(caller, request_id, "refused") }
    }

    /// A command that came to something, or of which that is not known; without a result, since nobody waited for it. `None` where
    /// it was refused before: that is told with the answer.
    pub fn command(
        caller: &Caller<'_>,
        names: Names,
        request_id: &str,
        result: Option<&Result<Reply, Failure>>,
    ) -> Option<Self> {
        let event = match result {
            None => Self::new(caller, request_id, "unknown"),
            Some(Ok(reply)) => {
                let why = match &reply.outcome {
                    Outcome::Rejected(why) => Some(why),
                    Outcome::TxnRejected(rejected) => Some(&rejected.why),
                    _ => None,
                };
                let outcome = if why.is_some() { "rejected" } else { "applied" };
                Self {
                    code: why.map(|why| name_of(rejection_code(why))),
                    revision: Some(reply.revision),
                    index: Some(reply.index),
                    replayed: reply.replayed,
                    ..Self::new(caller, request_id, outcome)
                }
            }
            Some(Err(failure)) if matches!(failure.status().as_u16(), 401 | 403 | 429) => return None,
            Some(Err(failure)) => {
                let outcome = if failure.applied() == Applied::Unknown { "unknown" } else { "failed" };
                Self {
                    code: Some(name_of(failure.code())),
                    status: Some(failure.status().as_u16()),
                    ..Self::new(caller, request_id, outcome)
                }
            }
        };
        Some(Self { names: names.shown, names_left_out: names.left_out, ..event })
    }
}

fn name_of(code: quorate_api::ErrorCode) -> String {
    quorate_api::code_name(code)
}

/// What a command names.
#[derive(Debug, Default)]
pub struct Names {
    shown: Vec<String>,
    left_out: usize,
}

impl Names {
    /// All of what is wanted.
    pub fn of(wanted: Wanted<'_>) -> Self {
        let mut names = Self::default();
        let visit: &mut Visit<'_> = &mut |requirement| names.add(requirement);
        wanted(visit);
        names
    }

    fn add(&mut self, requirement: Requirement<'_>) {
        let text = |name: &[u8]| bounded(&Name::from(name).to_string());
        let shown = match requirement {
            Requirement::Permission(RequiredPermission::Name(permission, name)) => {
                format!("{permission:?} {}", text(name))
            }
            Requirement::Permission(RequiredPermission::Prefix(permission, prefix)) => {
                format!("{permission:?} {}*", text(prefix))
            }
            Requirement::Permission(RequiredPermission::Range(permission, start, end)) => {
                format!("{permission:?} {}..{}", text(start), end.map(text).unwrap_or_default())
            }
            Requirement::Session(session) | Requirement::SessionOfBranch(session) => format!("Session {session}"),
            Requirement::Something => return,
        };
        match self.shown.len() < NAMES_MAX {
            true => self.shown.push(shown),
            false => self.left_out += 1,
        }
    }
}

fn bounded(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}
