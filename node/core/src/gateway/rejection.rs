//! What a refused command means: its code, and why in words.
//!
//! Owns the mapping of every rejection to a code of the catalogue. Never decides whether one may be tried again: the code does.

use quorate_api::{ErrorCode, InputFault, QuotaExceeded};
use quorate_machine::limits::LOCK_WAITERS_MAX;
use quorate_machine::rules::{RuleFault, field_text};
use quorate_machine::types::{
    AccessFault, BeyondQuota, Bounded, ClusterMillis, Counted, Guard, LockSpace, QuotaSubject, Refusal, Rejection,
    Revision, SessionId, TaskState, TaskSummary, TxnRefusal,
};

use crate::backend::members::explain_members;
use crate::gateway::failed::{self, explain_dear};
use crate::gateway::text::quoted;

/// A rejection for people: why the entry at `key` did not change.
pub fn explain(key: impl AsRef<[u8]>, clock: ClusterMillis, rejection: &Rejection) -> String {
    let is_unnamed = key.as_ref().is_empty();
    let shown = quoted(key);
    match rejection {
        Rejection::AlreadyExists { .. } => format!("{shown} already exists"),
        Rejection::NotFound => format!("there is no entry with the key {shown}"),
        Rejection::CasMismatch { expected, current: Some(current) } => {
            match (current.meta().cas_shown_at(clock), expected) {
                // None is ever 0: what was sent instead only its reader knows.
                (Some(cas), Some(0)) => format!("{shown} has cas {cas}, and what was named is the cas of no entry"),
                (Some(cas), Some(expected)) => format!("{shown} has cas {cas}, not {expected}"),
                (Some(cas), None) => format!("{shown} has cas {cas}, which is none of those given"),
                (None, _) => format!("{shown} is locked; only a write with the key of the lock as cas is applied"),
            }
        }
        Rejection::CasMismatch { current: None, .. } => format!("{shown} does not exist, so it has no cas"),
        Rejection::Locked { .. } => format!("{shown} is locked"),
        Rejection::NotLocked { .. } => format!("{shown} is not locked, or not any more"),
        Rejection::ConditionNotMet { unmet, .. } => {
            let pointers: Vec<_> = unmet.iter().map(|unmet| unmet.pointer.as_str()).collect();
            format!("{shown} does not meet the condition: {}", pointers.join(", "))
        }
        Rejection::PatchFailed { refusal, .. } => {
            format!("the patch does not fit {shown}: {}", failed::explain(&refusal.fault))
        }
        Rejection::CasListed { current } => match current.meta().cas_shown_at(clock) {
            Some(cas) => format!("{shown} has cas {cas}, which If-None-Match excludes"),
            None => format!("{shown} has a cas that If-None-Match excludes"),
        },
        Rejection::NotADocument { .. } => format!("{shown} holds no JSON object, so it cannot be patched"),
        Rejection::TooLarge { limit, actual } => {
            format!("the value would have {actual} bytes; the limit is {limit}")
        }
        Rejection::TooMuch { limit } => {
            format!("it would read, write and answer more than the {limit} bytes that one request may")
        }
        // A claim does not know which one it was.
        Rejection::TooDear(dear) if is_unnamed => explain_dear(*dear),
        Rejection::TooDear(dear) => format!("{shown}: {}", explain_dear(*dear)),
        Rejection::RulesBroken(faults) => {
            let told = match &faults[..] {
                [] => String::new(),
                [one] => format!(": {}: {}", one.pointer, one.kind),
                [first, ..] => {
                    format!(": {} faults, see `errors`; the first: {}: {}", faults.len(), first.pointer, first.kind)
                }
            };
            format!("{shown} would not be what its collection asks for{told}")
        }
        Rejection::NotUnique { fields, key } => {
            let fields: Vec<_> = fields.iter().map(field_text).collect();
            let (fields, other) = (fields.join(", "), quoted(&**key));
            format!("{shown} would have the same {fields} as {other}, which a unique index forbids")
        }
        Rejection::PreconditionRequired => {
            let how = "give If-Match (`cas`) or `if`, or insert";
            format!("the collection of {shown} takes no write that does not say what it expects; {how}")
        }
        Rejection::Overlaps(other) => {
            format!("{shown} and the collection `{other}` would be within each other; collections do not nest")
        }
        Rejection::TooManyToOrder(max) => {
            let how = "declare an index that gives the order, narrow the prefix, or leave out order_by";
            format!("to order them, more than {max} entries would have to be looked at; {how}")
        }
        Rejection::UsedUp => "the sequence has no number left".to_owned(),
        Rejection::SessionExpired(id) => format!("there is no session {id}, or not any more"),
        Rejection::SessionExists(id) => format!("there is a session {id} already"),
        Rejection::GuardFailed { guard, holder } => guard_failed(guard, *holder),
        Rejection::Held { delay_ms: 0, holders, waiters } => {
            format!("{shown} is held by {holders}, and {waiters} wait for it")
        }
        Rejection::Held { delay_ms, .. } => {
            format!("{shown} is given to nobody for {delay_ms} ms more: its last holder was not heard of any more")
        }
        Rejection::QueueLong { holders, waiters, most, delay_ms } => {
            let state = match delay_ms {
                0 => format!("held by {holders}"),
                left => format!("given to nobody for {left} ms more"),
            };
            let why = match *most {
                LOCK_WAITERS_MAX => "a queue has no more places".to_owned(),
                most => format!("`max_waiters` of the request is {most}"),
            };
            format!("{shown} is {state}, and {waiters} wait for it; {why}")
        }
        Rejection::NotHolder => format!("the token does not hold {shown}, or not any more"),
        Rejection::NotYours => {
            format!(
                "somebody else holds {shown} by that token: it takes their session, or a permission to administer that name"
            )
        }
        Rejection::AnotherPlace { is_holder: true, at } => {
            format!("the session holds {shown} already, with token {at} and in another way; one session, one place")
        }
        Rejection::AnotherPlace { is_holder: false, at } => {
            format!("the session waits for {shown} already, at place {at} and in another way; one session, one place")
        }
        Rejection::OtherNumber(others) => {
            format!("{shown} is in use with another number, {others}; all have to name the same")
        }
        Rejection::BarrierOpen => format!("{shown} is open until all who are in it have left"),
        Rejection::TooMany { what, limit } => {
            let what = match what {
                Bounded::Sessions => "sessions in the cluster",
                Bounded::Attached => "entries, locks and places that hang on one session",
                Bounded::AttachedBytes => "bytes of entries that go with one session",
                Bounded::UserRoles => "roles of one user",
                Bounded::RoleGrants => "grants of one role",
                Bounded::UserTokens => "tokens of one user; remove some",
                Bounded::Invitations => "invitations that are open; revoke some",
                Bounded::PrefixQuotas => "prefixes with a quota",
                Bounded::NestedQuotas => "prefixes with a quota around one name",
                Bounded::PrincipalQuotas => "principals with a quota of their own",
                Bounded::RequestIds => {
                    "bytes of outcomes kept for retries; those of a quarter of an hour go at once, so ask again in a few minutes"
                }
                Bounded::OwnRequestIds => {
                    "bytes of outcomes kept for retries of one user once half of the room for them is taken; those of a quarter of an hour go at once"
                }
            };
            format!("there may be at most {limit} {what}")
        }
        Rejection::RequestIdReused => {
            "the request id was used before for another request; give each request its own".to_owned()
        }
        Rejection::Unsupported(reason) => format!("the cluster could not execute the command: {reason}"),
        Rejection::AccessChanged => {
            "users, roles or tokens changed meanwhile; nothing was looked at, try again".to_owned()
        }
        Rejection::Access(fault) => explain_access(fault),
        Rejection::Members(fault) => explain_members(*fault),
        Rejection::BeyondQuota(beyond) => explain_quota(beyond),
        Rejection::Txn(why) => match why {
            TxnRefusal::KeyTwice => {
                format!("{shown} is written and then removed with a range; a transaction changes each key once")
            }
            TxnRefusal::Compacted => "a revision that the transaction reads at is compacted".to_owned(),
            TxnRefusal::Future => "a revision that the transaction reads at is yet to come".to_owned(),
        },
        Rejection::TaskInUse(task) => explain_task_in_use(task),
        Rejection::Internal => {
            let where_to = "nothing of it was applied, and /v1/cluster/faults keeps it for a report";
            format!("the request met a bug of this software; {where_to}")
        }
    }
}

/// Why a task is not scheduled whose id another has, for people.
fn explain_task_in_use(task: &TaskSummary) -> String {
    let id = quoted(task.id.as_str());
    match task.state {
        Some(TaskState::Claimed { .. }) => {
            format!("the task {id} is worked on, and not replaced meanwhile: cancel it first, or give another id")
        }
        Some(TaskState::Done { .. }) => {
            format!("the task {id} was completed, and its id is kept for a while: cancel it first, or give another id")
        }
        _ => format!(
            "the task {id} is dead: requeue it, or put this one in its place with `replace`, or give another id"
        ),
    }
}

/// What cannot be of users, roles and tokens, for people.
fn explain_access(fault: &AccessFault) -> String {
    match fault {
        AccessFault::NoUser(name) => format!("there is no user {}", quoted(name.as_str())),
        AccessFault::NoRole(name) => format!("there is no role {}", quoted(name.as_str())),
        AccessFault::NoToken(id) => format!("there is no token {id}"),
        AccessFault::RoleInUse(user) => {
            format!("the user {} has the role; take it from all who have it first", quoted(user.as_str()))
        }
        AccessFault::TokenExists => "there is a token with this id; ask for another".to_owned(),
    }
}

/// What a quota counts, as it is named in bounds.
fn counted(what: Counted) -> &'static str {
    match what {
        Counted::Sessions => "sessions",
        Counted::Locks => "locks",
        Counted::Entries => "entries",
        Counted::Bytes => "bytes",
        Counted::Tasks => "tasks",
    }
}

/// Which quota a command would have gone beyond, if that is why it is refused.
pub fn beyond(rejection: &Rejection) -> Option<QuotaExceeded> {
    let Rejection::BeyondQuota(beyond) = rejection else { return None };
    let BeyondQuota { subject, what, bound, used, .. } = &**beyond;
    let (principal, prefix) = match subject {
        QuotaSubject::Principal(name) => (Some(name.clone()), None),
        QuotaSubject::Prefix(prefix) => (None, Some(prefix.as_slice().into())),
        QuotaSubject::Default => (None, None),
    };
    Some(QuotaExceeded { principal, prefix, counts: counted(*what).to_owned(), bound: *bound, used: *used })
}

/// Which quota is used up, for people.
fn explain_quota(beyond: &BeyondQuota) -> String {
    let BeyondQuota { subject, is_own, what, bound, used } = beyond;
    let what = counted(*what);
    let (whose, how) = match subject {
        QuotaSubject::Prefix(prefix) => {
            (format!("the prefix {}", quoted(prefix)), "remove some, or have the quota raised")
        }
        QuotaSubject::Principal(name) if *is_own => {
            (format!("the user {}", quoted(name)), "give some up, or have the quota raised")
        }
        QuotaSubject::Principal(name) => (
            format!("the user {}", quoted(name)),
            "give some up, or have a quota of its own set; this is the usual one",
        ),
        QuotaSubject::Default => ("a user".to_owned(), "give some up"),
    };
    format!("{whose} has {used} of {bound} {what}, and this would take it beyond; {how}")
}

/// That a token does not hold a lock, for people.
fn guard_failed(guard: &Guard, holder: Option<Revision>) -> String {
    let what = match guard.lock.space {
        LockSpace::Lock => "lock",
        LockSpace::Election => "election",
    };
    let holder = holder.map_or("nobody does".to_owned(), |token| format!("{token} does"));
    format!("token {} does not hold the {what} {}; {holder}", guard.token, quoted(guard.lock.name.as_str()))
}

/// What is wrong with a document by the rules of its collection, with pointers below `place`.
pub fn faults_below(rejection: &Rejection, place: &str) -> Vec<InputFault> {
    let Rejection::RulesBroken(faults) = rejection else { return Vec::new() };
    let fault = |fault: &RuleFault| {
        let (pointer, detail) = (format!("{place}{}", fault.pointer), fault.kind.to_string());
        InputFault { pointer, detail }
    };
    faults.iter().map(fault).collect()
}

/// The code of a rejection; also what `/v1/requests` shows.
pub fn rejection_code(rejection: &Rejection) -> ErrorCode {
    match rejection {
        // For the moment only, so that no trail has it.
        Rejection::TooMany { what: Bounded::RequestIds | Bounded::OwnRequestIds, .. } => ErrorCode::TooManyRequests,
        _ => refusal_code(rejection.into()),
    }
}

/// The same of what the audit trail keeps of it.
pub fn refusal_code(refusal: Refusal) -> ErrorCode {
    match refusal {
        Refusal::AlreadyExists
        | Refusal::TaskInUse
        | Refusal::Overlaps
        | Refusal::SessionExists
        | Refusal::AccessExists
        | Refusal::MembersExists => ErrorCode::AlreadyExists,
        Refusal::NotFound | Refusal::Access | Refusal::MembersMissing => ErrorCode::NotFound,
        // Also where the entry is gone: the caller named a token, and the token is what does not hold.
        Refusal::CasMismatch => ErrorCode::CasMismatch,
        // The opposite of a mismatch: the token named is the current one, and the caller asked for another.
        Refusal::CasListed => ErrorCode::ConditionNotMet,
        Refusal::Locked | Refusal::Held | Refusal::QueueLong | Refusal::BarrierOpen => ErrorCode::Locked,
        Refusal::NotLocked | Refusal::NotHolder => ErrorCode::NotLockHolder,
        // Not 400: the request is well formed, it is the entry that does not fit, and may do so later.
        Refusal::ConditionNotMet | Refusal::NotADocument | Refusal::PatchFailed => ErrorCode::ConditionNotMet,
        Refusal::TooDear => ErrorCode::TooDear,
        Refusal::TooLarge | Refusal::TooManyToOrder | Refusal::UsedUp | Refusal::TooMany => ErrorCode::TooLarge,
        Refusal::RulesBroken => ErrorCode::InvalidDocument,
        Refusal::NotUnique => ErrorCode::UniqueViolation,
        Refusal::PreconditionRequired => ErrorCode::PreconditionRequired,
        Refusal::SessionExpired => ErrorCode::SessionExpired,
        Refusal::GuardFailed => ErrorCode::GuardFailed,
        Refusal::NotYours => ErrorCode::PermissionDenied,
        Refusal::AnotherPlace => ErrorCode::AlreadyQueued,
        Refusal::OtherNumber => ErrorCode::DifferentSettings,
        Refusal::RequestIdReused => ErrorCode::RequestIdReused,
        // Not the caller's doing: the node that wrote the command and the state machine are of different builds.
        Refusal::Unsupported | Refusal::Internal => ErrorCode::Internal,
        // Of this node's place in the log: once it has applied as far, it knows what holds.
        Refusal::AccessChanged => ErrorCode::NotReady,
        Refusal::AccessInUse => ErrorCode::InUse,
        Refusal::Members => ErrorCode::ChangeRefused,
        Refusal::BeyondQuota => ErrorCode::QuotaExceeded,
        Refusal::TxnCompacted => ErrorCode::Compacted,
        Refusal::Txn => ErrorCode::InvalidArgument,
    }
}

/// That there is no session with this id.
pub fn no_session(id: SessionId) -> String {
    format!("there is no session {id}, or not any more")
}

#[cfg(test)]
mod tests {
    use quorate_machine::document::TooDear;
    use quorate_machine::types::MembersFault;

    use super::*;

    #[test]
    fn the_trail_has_the_code_that_was_answered() {
        for (rejection, code) in [
            (Rejection::RulesBroken(Box::default()), ErrorCode::InvalidDocument),
            (Rejection::AnotherPlace { is_holder: true, at: 1 }, ErrorCode::AlreadyQueued),
            (Rejection::OtherNumber(3), ErrorCode::DifferentSettings),
            (Rejection::Members(MembersFault::NoInvitation), ErrorCode::NotFound),
            (Rejection::Members(MembersFault::InvitationExists), ErrorCode::AlreadyExists),
            (Rejection::Members(MembersFault::IdRemoved), ErrorCode::ChangeRefused),
            (Rejection::Access(Box::new(AccessFault::TokenExists)), ErrorCode::AlreadyExists),
            (Rejection::Txn(TxnRefusal::Compacted), ErrorCode::Compacted),
            (Rejection::Txn(TxnRefusal::Future), ErrorCode::InvalidArgument),
            (Rejection::TooDear(TooDear { limit: 8, actual: 9 }), ErrorCode::TooDear),
        ] {
            assert_eq!(rejection_code(&rejection), code, "{rejection:?}");
            assert_eq!(refusal_code(Refusal::from(&rejection)), code, "{rejection:?}");
        }
    }
}
