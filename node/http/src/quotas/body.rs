//! What requests about quotas have in common.
//!
//! Owns how bounds are read and quotas shown, and the way of an operation to what came of it.

use quorate_api::{
    ErrorCode, Name, QuotaAmounts, QuotaAnswer, QuotaList, QuotaRemoved, QuotaRequest, QuotaState, path,
};
use quorate_machine::query::{Observed, Page, QuotaRead, QuotaUse};
use quorate_machine::types::{
    Action, Outcome as Decided, PrefixUse, PrincipalUse, QuotaBounds, QuotaOp, QuotaRow, QuotaSubject, Reply,
};
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::text::{self, quoted};
use quorate_node_core::gateway::{decide, propose};
use quorate_threads::background;

use crate::command;
use crate::context::RequestContext;
use crate::coordinate;
use crate::input::extract::Faults;
use crate::input::json_body;
use crate::output::response::{Outcome, created};

/// Shows a quota that is there.
pub async fn get(context: &RequestContext, subject: QuotaSubject) -> Outcome {
    context.admit_read(&requirement::on_prefix(Permission::Admin, b"")).await?;
    let Observed { at, found, .. } = context.api.node.quota(&subject).map_err(|fault| Failure::from_fault(&fault))?;
    let read = found.ok_or_else(|| command::missing(missing(&subject), at))?;
    let answer = QuotaAnswer { revision: Some(at.revision), index: Some(at.index), ..view(&subject, &read) };
    command::answer(&answer, at.revision, None)
}

/// The name or prefix in the rest of a path, of 1 to so many bytes; `field` is where it stands.
pub fn name_in_path(rest: &str, field: &str, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let name = text::percent_decode_bytes(rest).map_err(|why| Failure::invalid(field, why))?;
    match name.len() {
        bytes if (1..=bytes_max).contains(&bytes) => Ok(name.into_owned()),
        bytes => Err(Failure::invalid(field, format!("1 to {bytes_max} bytes, this one has {bytes}"))),
    }
}

/// That there is none, for people.
fn missing(subject: &QuotaSubject) -> String {
    let whose = match subject {
        QuotaSubject::Default => "every principal".to_owned(),
        QuotaSubject::Principal(name) => format!("the principal {}", quoted(name)),
        QuotaSubject::Prefix(prefix) => format!("the prefix {}", quoted(prefix)),
    };
    format!("there is no quota of {whose}")
}

/// Sets a quota from `json`, the body of the request.
pub async fn put(context: &RequestContext, subject: QuotaSubject, json: &[u8], path: &str) -> Outcome {
    let request =
        background::in_place(json.len(), || json_body::frame_without::<QuotaRequest>(json, uncounted(&subject)));
    let QuotaRequest { sessions, locks, entries, bytes, tasks, request_id } = request?;
    let bounds = QuotaBounds { sessions, locks, entries, bytes, tasks };
    context.with_request_id(request_id, check(&subject, &bounds))?;
    // Of a principal something holds in any case: it is new where it has no row.
    let is_new = command::is_absent(context, |backend| {
        let seen = backend.quota(&subject)?;
        Ok(Observed { at: seen.at, wall: seen.wall, found: seen.found.and_then(|read| read.row) })
    })
    .await?;
    let (reply, row) = carry_out(context, QuotaOp::Set { subject: subject.clone(), bounds }).await?;
    let Some(row) = row else { return Err(propose::confused(&reply)) };
    let Reply { revision, index, replayed, .. } = reply;
    let at = (Some(revision), Some(index));
    let answer = QuotaAnswer { revision: at.0, index: at.1, replayed, ..of_row(&subject, &row) };
    let shown = command::answer(&answer, revision, None)?;
    Ok(if is_new && !replayed { created(shown, path.to_owned()) } else { shown })
}

/// Removes a quota.
pub async fn delete(context: &RequestContext, subject: QuotaSubject) -> Outcome {
    let (reply, _) = carry_out(context, QuotaOp::Remove(subject.clone())).await?;
    let Reply { revision, index, replayed, .. } = reply;
    let (principal, prefix) = names(&subject);
    command::answer(&QuotaRemoved { principal, prefix, revision, index, replayed }, revision, None)
}

async fn carry_out(context: &RequestContext, op: QuotaOp) -> Result<(Reply, Option<Box<QuotaRow>>), Failure> {
    let subject = op.subject().clone();
    let mut reply = decide::decide(context, Action::Quota(op), false).await?;
    match std::mem::replace(&mut reply.outcome, Decided::Deferred) {
        Decided::Quota(row) => Ok((reply, row)),
        Decided::Rejected(why) => {
            let failure = Failure::from_rejection("", &reply, &why);
            let is_missing = failure.code() == ErrorCode::NotFound;
            Err(if is_missing { failure.saying(missing(&subject)) } else { failure })
        }
        _ => Err(propose::confused(&reply)),
    }
}

/// The bounds of what is not counted for a subject.
fn uncounted(subject: &QuotaSubject) -> &'static [&'static str] {
    match subject {
        QuotaSubject::Default | QuotaSubject::Principal(_) => &["entries", "bytes", "tasks"],
        QuotaSubject::Prefix(_) => &["sessions", "locks"],
    }
}

/// Refuses bounds of what is not counted for a subject.
fn check(subject: &QuotaSubject, bounds: &QuotaBounds) -> Result<(), Failure> {
    let mut faults = Faults::default();
    let QuotaBounds { sessions, locks, entries, bytes, tasks } = bounds;
    let (foreign, why) = match subject {
        QuotaSubject::Default | QuotaSubject::Principal(_) => (
            vec![("/entries", entries), ("/bytes", bytes), ("/tasks", tasks)],
            "is counted by prefix, not by principal: see /v1/quotas/prefixes",
        ),
        QuotaSubject::Prefix(_) => (
            vec![("/sessions", sessions), ("/locks", locks)],
            "is counted by principal, not by prefix: see /v1/quotas/principals",
        ),
    };
    for (pointer, _) in foreign.into_iter().filter(|(_, bound)| bound.is_some()) {
        faults.add(pointer, why.to_owned());
    }
    faults.check()
}

/// A page of quotas as it is shown.
pub fn list(seen: &Observed<Page<(QuotaSubject, QuotaRead)>>) -> Outcome {
    let Observed { at, found, .. } = seen;
    let quotas = found.items.iter().map(|(subject, read)| view(subject, read)).collect();
    let last = found.items.last().filter(|_| found.more).map(|(subject, _)| match subject {
        QuotaSubject::Default => String::new(),
        QuotaSubject::Principal(name) => name.clone(),
        // Encoded, since it need not be a text.
        QuotaSubject::Prefix(prefix) => path::encode_segment(prefix),
    });
    command::answer(&QuotaList { quotas, cursor: last, revision: at.revision, index: at.index }, at.revision, None)
}

fn names(subject: &QuotaSubject) -> (Option<String>, Option<Name>) {
    match subject {
        QuotaSubject::Default => (None, None),
        QuotaSubject::Principal(name) => (Some(name.clone()), None),
        QuotaSubject::Prefix(prefix) => (None, Some(prefix.as_slice().into())),
    }
}

fn amounts(bounds: &QuotaBounds) -> QuotaAmounts {
    let QuotaBounds { sessions, locks, entries, bytes, tasks } = *bounds;
    QuotaAmounts { sessions, locks, entries, bytes, tasks }
}

fn of_row(subject: &QuotaSubject, row: &QuotaRow) -> QuotaAnswer {
    let (principal, prefix) = names(subject);
    QuotaAnswer {
        principal,
        prefix,
        bounds: amounts(&row.bounds),
        used: None,
        state: None,
        is_default: false,
        set_revision: Some(row.revision),
        created: Some(coordinate::moment(row.created)),
        revision: None,
        index: None,
        replayed: false,
    }
}

/// A quota as a list shows it.
fn view(subject: &QuotaSubject, read: &QuotaRead) -> QuotaAnswer {
    let QuotaRead { row, bounds, used, is_counting } = read;
    let (principal, prefix) = names(subject);
    let used = match used {
        QuotaUse::Nobody => None,
        QuotaUse::Principal(PrincipalUse { sessions, locks }) => {
            Some(QuotaAmounts { sessions: Some(*sessions), locks: Some(*locks), ..QuotaAmounts::default() })
        }
        QuotaUse::Prefix(PrefixUse { entries, bytes, tasks, .. }) => Some(QuotaAmounts {
            entries: Some(*entries),
            bytes: Some(*bytes),
            tasks: Some(*tasks),
            ..QuotaAmounts::default()
        }),
    };
    QuotaAnswer {
        is_default: principal.is_some() && row.is_none(),
        principal,
        prefix,
        bounds: amounts(bounds),
        used,
        state: Some(if *is_counting { QuotaState::Counting } else { QuotaState::Enforced }),
        set_revision: row.as_ref().map(|row| row.revision),
        created: row.as_ref().map(|row| coordinate::moment(row.created)),
        revision: None,
        index: None,
        replayed: false,
    }
}
