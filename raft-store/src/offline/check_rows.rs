//! Whether a row is one that this build wrote: its key and its value by the codec of its family.
//!
//! Owns that list. Never compares rows with one another: that is [`super::check_state`].

use quorate_machine::codec::{self, CodecError};
use quorate_machine::document::Json;
use quorate_machine::keyspace::bucket_use::{self, BucketUse, OwnerUse, RefusedUse, Whose};
use quorate_machine::keyspace::fault::{FaultCounts, FaultRow, ParkedRow};
use quorate_machine::keyspace::lock_queue::{HolderRow, LockHead, WaiterRow};
use quorate_machine::keyspace::relocked::LockBefore;
use quorate_machine::keyspace::request::KeptReply;
use quorate_machine::keyspace::session::{AttachedKind, PartyAt, SessionRow};
use quorate_machine::keyspace::task::{QueueRow, TaskRow};
use quorate_machine::keyspace::{
    access, audit, collection, deadline, entry, family, fault, gates, history, index, lock, lock_queue, members, quota,
    refusals, relocked, request, sequence, session, task, timer,
};
use quorate_machine::types::{
    BarrierRow, CollectionRow, ContentKind, Elected, InvitationRow, LatchRow, PrefixUse, PrincipalUse, QuotaRow,
    QuotaState, QuotaSubject, RemovedRow, RoleRow, TokenRow, UserRow,
};

use crate::meta::{APPLIED_KEY, AppliedRecord};

/// Families in order, with what their rows are called.
pub const NAMES: [(u8, &str); 41] = [
    (family::META, "applied position"),
    (family::ENTRY, "entries"),
    (family::HISTORY, "old versions"),
    (family::RELOCKED, "locks of before"),
    (family::AUDIT, "audit groups"),
    (family::REFUSALS, "audit groups of refusals"),
    (family::REQUEST, "kept answers"),
    (family::BUCKET_USE, "what buckets hold"),
    (family::DEADLINE, "deadlines"),
    (family::LOCK, "ends of locks on entries"),
    (family::COLLECTION, "collections"),
    (family::INDEX, "index entries"),
    (family::SEQUENCE, "sequences"),
    (family::DROPPED_INDEX, "indexes to be cleared"),
    (family::TIMER, "timers"),
    (family::SESSION, "sessions"),
    (family::ATTACHED, "things that hang on sessions"),
    (family::LOCK_HEAD, "locks"),
    (family::HOLDER, "holders of locks"),
    (family::WAITER, "waiters for locks"),
    (family::ELECTED, "changes of leaders"),
    (family::BARRIER, "barriers"),
    (family::LATCH, "latches"),
    (family::TASK, "tasks"),
    (family::TASK_DUE, "tasks by time"),
    (family::TASK_DEAD, "dead tasks by time"),
    (family::QUEUE, "queues"),
    (family::TASK_UNPLANNED, "tasks to be planned"),
    (family::USER, "users"),
    (family::ROLE, "roles"),
    (family::TOKEN, "tokens"),
    (family::USER_TOKEN, "tokens by user"),
    (family::ROLE_USER, "users by role"),
    (family::FAULT, "commands that faulted"),
    (family::PARKED, "work set aside"),
    (family::FAULT_COUNTS, "counts of faults"),
    (family::INVITATION, "invitations of newcomers"),
    (family::REMOVED_MEMBER, "members of before"),
    (family::QUOTA, "quotas"),
    (family::QUOTA_USE, "what is counted for quotas"),
    (family::QUOTA_STATE, "what holds for all quotas"),
];

/// Decodes a row, and throws away what it holds.
pub fn decode(row_key: &[u8], value: &[u8]) -> Result<(), CodecError> {
    let first = *row_key.first().ok_or(CodecError::Empty)?;
    match first {
        family::META if row_key == APPLIED_KEY => whole::<AppliedRecord>(value),
        family::ENTRY => check_entry(value),
        family::HISTORY => history::decode_key(row_key).and_then(|_| history::decode(value).map(drop)),
        family::RELOCKED => relocked::decode_key(row_key).and_then(|_| whole::<LockBefore>(value)),
        family::AUDIT => audit::decode_key(row_key).and_then(|_| audit::decode(value).map(drop)),
        family::REFUSALS => refusals::decode_key(row_key).and_then(|_| audit::decode(value).map(drop)),
        family::REQUEST => request::decode_key(row_key).and_then(|_| whole::<KeptReply>(value)),
        family::BUCKET_USE => match bucket_use::decode_key(row_key)? {
            (_, Whose::All) => whole::<BucketUse>(value),
            (_, Whose::Kept(_)) => whole::<OwnerUse>(value),
            (_, Whose::Refused(_)) => whole::<RefusedUse>(value),
        },
        family::DEADLINE => deadline::decode_key(row_key).and_then(|_| nothing(value)),
        family::LOCK => lock::decode_key(row_key).and_then(|_| nothing(value)),
        family::COLLECTION => collection::decode_key(row_key).and_then(|_| whole::<CollectionRow>(value)),
        // How many fields it has, only its collection knows.
        family::INDEX => index::decode_key(row_key, 0).and_then(|_| nothing(value)),
        family::SEQUENCE => sequence::decode(value).map(drop),
        family::DROPPED_INDEX => index::decode_dropped(row_key).and_then(|_| nothing(value)),
        family::TIMER => timer::decode_key(row_key).and_then(|_| nothing(value)),
        family::SESSION => session::decode_key(row_key).and_then(|_| whole::<SessionRow>(value)),
        family::ATTACHED => match session::decode_attached(row_key)?.1 {
            AttachedKind::Lock => whole::<PartyAt>(value),
            AttachedKind::Entry | AttachedKind::Barrier | AttachedKind::Task => nothing(value),
        },
        family::LOCK_HEAD => lock_queue::decode_head_key(row_key).and_then(|_| whole::<LockHead>(value)),
        family::HOLDER => lock_queue::decode_holder(row_key).and_then(|_| whole::<HolderRow>(value)),
        family::WAITER => lock_queue::decode_waiter(row_key).and_then(|_| whole::<WaiterRow>(value)),
        family::ELECTED => lock_queue::decode_elected(row_key).and_then(|_| whole::<Option<Elected>>(value)),
        family::BARRIER => gates::decode_barrier(row_key).and_then(|_| whole::<BarrierRow>(value)),
        family::LATCH => gates::decode_latch(row_key).and_then(|_| whole::<LatchRow>(value)),
        family::TASK => task::decode_key(row_key).and_then(|_| whole::<TaskRow>(value)),
        family::TASK_DUE => task::decode_due(row_key).and_then(|_| task::decode_id(value).map(drop)),
        family::TASK_DEAD => task::decode_dead(row_key).and_then(|_| task::decode_id(value).map(drop)),
        family::QUEUE => task::decode_queue(row_key).and_then(|_| whole::<QueueRow>(value)),
        family::TASK_UNPLANNED => task::decode_unplanned(row_key).and_then(|_| nothing(value)),
        family::USER => access::decode_user(row_key).and_then(|_| whole::<UserRow>(value)),
        family::ROLE => access::decode_role(row_key).and_then(|_| whole::<RoleRow>(value)),
        family::TOKEN => access::decode_token(row_key).and_then(|_| whole::<TokenRow>(value)),
        family::USER_TOKEN => access::decode_user_token(row_key).and_then(|_| nothing(value)),
        family::ROLE_USER => access::decode_role_user(row_key).and_then(|_| nothing(value)),
        family::FAULT => fault::decode_key(row_key).and_then(|_| whole::<FaultRow>(value)),
        family::PARKED => fault::decode_parked(row_key).and_then(|_| whole::<ParkedRow>(value)),
        family::FAULT_COUNTS => whole::<FaultCounts>(value),
        family::INVITATION => members::decode_invitation(row_key).and_then(|_| whole::<InvitationRow>(value)),
        family::REMOVED_MEMBER => members::decode_removed(row_key).and_then(|_| whole::<RemovedRow>(value)),
        family::QUOTA => quota::decode_key(row_key).and_then(|_| whole::<QuotaRow>(value)),
        family::QUOTA_USE => match quota::decode_use_key(row_key)? {
            QuotaSubject::Prefix(_) => whole::<PrefixUse>(value),
            QuotaSubject::Default | QuotaSubject::Principal(_) => whole::<PrincipalUse>(value),
        },
        family::QUOTA_STATE => whole::<QuotaState>(value),
        unknown => Err(CodecError::Malformed(format!("a row of the unknown family {unknown:#04x}"))),
    }
}

fn check_entry(value: &[u8]) -> Result<(), CodecError> {
    let row = entry::decode(value)?;
    match row.kind {
        ContentKind::Bytes => Ok(()),
        ContentKind::Json => Json::parse_stored(row.data)
            .map(drop)
            .map_err(|error| CodecError::Malformed(format!("the value is no JSON: {error}"))),
    }
}

fn whole<T: bincode::Decode<quorate_machine::codec::Written>>(value: &[u8]) -> Result<(), CodecError> {
    codec::decode::<T>(value).map(drop)
}

fn nothing(value: &[u8]) -> Result<(), CodecError> {
    match value.len() {
        0 => Ok(()),
        bytes => Err(CodecError::Malformed(format!("{bytes} bytes where nothing belongs"))),
    }
}
