//! The key space of the state database: every kind of row, its key, its value, and when it exists.
//!
//! Owns the bytes of all rows and their digest, nothing else: no reads, no writes, no decisions. One column family; the first byte
//! of a row key is the family. The numbers are on disk in every deployment and never change their meaning.
//!
//! | family | row | key after the family byte | value | exists |
//! |---|---|---|---|---|
//! | `0x00` | `meta` | `0x01` | `AppliedRecord` of quorate-store | always, once anything was applied; written with each batch |
//! | `0x10` | [`entry`] | the key, raw | meta, kind, data (see [`entry`]) | while the key has a current version, also past its deadline until it is removed |
//! | `0x20` | [`history`] | escaped key, mod revision BE | the entry row as it was, or nothing for a tombstone | from when a version is superseded (tombstone: from removal) until compacted |
//! | `0x30` | [`audit`] | last revision of the batch BE, log index BE | [`audit::AuditGroup`] | for each batch that changed something, until compacted |
//! | `0x31` | [`refusals`] | bucket BE, log index BE | [`audit::AuditGroup`] | for each batch whose commands were all refused, until its bucket is dropped |
//! | `0x40` | [`request`] | bucket BE, request id, owner | [`request::KeptReply`] | for each command with an id, without values, until its bucket is dropped |
//! | `0x41` | [`bucket_use`] | bucket BE | [`bucket_use::BucketUse`] | once something was written into the bucket, until it is dropped |
//! | `0x41` | [`bucket_use`] | bucket BE, principal | [`bucket_use::OwnerUse`] | once something was kept for a principal in the bucket, until it is dropped |
//! | `0x41` | [`bucket_use`] | bucket BE, `0xff`, principal | [`bucket_use::RefusedUse`] | once refusals of a principal were recorded in the bucket while shares held, until it is dropped |
//! | `0x50` | [`deadline`] | `expires_at` BE, key | nothing | exactly while the entry of that key has that `expires_at` |
//! | `0x51` | [`lock`] | `locked_until` BE, key | nothing | while the entry of that key has that `locked_until`, until the lock has ended |
//! | `0x60` | [`collection`] | name | [`crate::types::CollectionRow`] | while the collection is declared |
//! | `0x61` | [`index`] | index id BE, values, key | nothing | for each entry that the index [holds](crate::types::IndexState::holds), and of one that failed or was dropped until it is cleared |
//! | `0x62` | [`sequence`] | name | last number BE | once the sequence gave one |
//! | `0x63` | [`index`] | index id BE | nothing | from when an index fails or is dropped until its rows are cleared |
//! | `0x70` | [`timer`] | time BE, kind, subject | nothing | until it fires or is not needed any more |
//! | `0x71` | [`session`] | session BE | [`session::SessionRow`] | while the session lives |
//! | `0x72` | [`session`] | session BE, kind, subject | for a lock [`session::PartyAt`], else nothing | for each thing that hangs on a session |
//! | `0x73` | [`lock_queue`] | lock | [`lock_queue::LockHead`] | while the lock is held, waited for or held back |
//! | `0x74` | [`lock_queue`] | escaped lock, token BE | [`lock_queue::HolderRow`] | for each holder |
//! | `0x75` | [`lock_queue`] | escaped lock, place BE | [`lock_queue::WaiterRow`] | for each waiter |
//! | `0x76` | [`lock_queue`] | escaped name, revision BE | [`crate::types::Elected`], if any | for each change of an election, until compacted |
//! | `0x77` | [`gates`] | name | [`crate::types::BarrierRow`] | while somebody is in the barrier |
//! | `0x78` | [`gates`] | name | [`crate::types::LatchRow`] | until the latch is removed |
//! | `0x80` | [`task`] | escaped queue, id | [`task::TaskRow`] | from when a task is scheduled until it is done with, or its id is given free |
//! | `0x81` | [`task`] | escaped queue, due BE, number BE | the id | exactly while the task is scheduled |
//! | `0x82` | [`task`] | escaped queue, time of death BE, number BE | the id | exactly while the task is dead |
//! | `0x83` | [`task`] | escaped queue | [`task::QueueRow`] | once a task was scheduled into it |
//! | `0x84` | [`task`] | escaped queue, id | nothing | exactly while the task is to be planned |
//! | `0x90` | [`access`] | user | [`crate::types::UserRow`] | until the user is removed |
//! | `0x91` | [`access`] | role | [`crate::types::RoleRow`] | until the role is removed |
//! | `0x92` | [`access`] | token id BE | [`crate::types::TokenRow`] | until the token or its user is removed; past its time until the user gets another |
//! | `0x93` | [`access`] | escaped user, token id BE | nothing | exactly while the token is there |
//! | `0x94` | [`access`] | escaped role, user | nothing | exactly while the user has the role |
//! | `0xA0` | [`fault`] | log index BE, number (4 bytes BE) | [`fault::FaultRow`] | for the last commands that faulted, until an operator drops them |
//! | `0xA1` | [`fault`] | the row key of the work | [`fault::ParkedRow`] | for work of the machine's own that faulted, until an operator has it retried or dropped |
//! | `0xA2` | [`fault`] | nothing | [`fault::FaultCounts`] | once anything faulted |
//! | `0xC0` | [`members`] | invitation id BE | [`crate::types::InvitationRow`] | until the node that used it is a member, or it is revoked; past its time until another is made |
//! | `0xC1` | [`members`] | node id BE, incarnation (16 bytes BE) | [`crate::types::RemovedRow`] | for each node that was removed with this disk |
//! | `0xB0` | [`quota`] | kind, name | [`crate::types::QuotaRow`] | until the quota is removed |
//! | `0xB1` | [`quota`] | kind, name | [`crate::types::PrincipalUse`] or [`crate::types::PrefixUse`] | while a principal has something; exactly while the prefix has a quota |
//! | `0xB2` | [`quota`] | nothing | [`crate::types::QuotaState`] | while there is a quota, or something is to be counted |
//!
//! BE is eight bytes, big endian, so that bytewise order is numeric order. A *bucket* is a stretch of cluster clock,
//! `limits::REQUEST_BUCKET_MS` wide; the current and the previous one are live, older ones are dropped whole.
//! The digest (see [`digest`]) covers every family but `0x00`.

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod access;
pub mod audit;
pub mod backed_up;
pub mod bucket;
pub mod bucket_use;
pub mod changes;
pub mod collection;
pub mod deadline;
pub mod digest;
pub mod entry;
pub mod fault;
pub mod gates;
pub mod history;
pub mod index;
pub mod lock;
pub mod lock_queue;
pub mod members;
pub mod named;
pub mod quota;
pub mod refusals;
pub mod relocked;
pub mod request;
pub mod sequence;
pub mod session;
pub mod task;
pub mod timer;

use crate::codec::CodecError;
use crate::types::ClusterMillis;

pub use crate::entry::after_prefix;

/// First bytes of row keys.
pub mod family {
    /// Rows of the node's own bookkeeping; outside the digest.
    pub const META: u8 = 0x00;
    /// Current versions.
    pub const ENTRY: u8 = 0x10;
    /// Superseded versions and tombstones.
    pub const HISTORY: u8 = 0x20;
    /// What locks on entries were before they changed.
    pub const RELOCKED: u8 = 0x21;
    /// Audit groups of batches that changed something.
    pub const AUDIT: u8 = 0x30;
    /// Audit groups of batches that changed nothing.
    pub const REFUSALS: u8 = 0x31;
    /// Kept answers.
    pub const REQUEST: u8 = 0x40;
    /// How much buckets hold.
    pub const BUCKET_USE: u8 = 0x41;
    /// Pending expiries.
    pub const DEADLINE: u8 = 0x50;
    /// Pending ends of document locks.
    pub const LOCK: u8 = 0x51;
    /// Collections.
    pub const COLLECTION: u8 = 0x60;
    /// Entries of indexes.
    pub const INDEX: u8 = 0x61;
    /// Sequences.
    pub const SEQUENCE: u8 = 0x62;
    /// Indexes to be cleared.
    pub const DROPPED_INDEX: u8 = 0x63;
    /// Moments at which the machine does something by itself.
    pub const TIMER: u8 = 0x70;
    /// Sessions.
    pub const SESSION: u8 = 0x71;
    /// What hangs on sessions.
    pub const ATTACHED: u8 = 0x72;
    /// Locks and elections.
    pub const LOCK_HEAD: u8 = 0x73;
    /// Holders of locks.
    pub const HOLDER: u8 = 0x74;
    /// Waiters for locks.
    pub const WAITER: u8 = 0x75;
    /// Who led an election since when.
    pub const ELECTED: u8 = 0x76;
    /// Barriers.
    pub const BARRIER: u8 = 0x77;
    /// Latches.
    pub const LATCH: u8 = 0x78;
    /// Timed tasks.
    pub const TASK: u8 = 0x80;
    /// Scheduled tasks by the time they are due.
    pub const TASK_DUE: u8 = 0x81;
    /// Dead tasks by the time they died.
    pub const TASK_DEAD: u8 = 0x82;
    /// Queues of tasks.
    pub const QUEUE: u8 = 0x83;
    /// Tasks that are to be planned.
    pub const TASK_UNPLANNED: u8 = 0x84;
    /// Users.
    pub const USER: u8 = 0x90;
    /// Roles.
    pub const ROLE: u8 = 0x91;
    /// Tokens.
    pub const TOKEN: u8 = 0x92;
    /// Tokens by their user.
    pub const USER_TOKEN: u8 = 0x93;
    /// Users by their roles.
    pub const ROLE_USER: u8 = 0x94;
    /// Commands that faulted.
    pub const FAULT: u8 = 0xA0;
    /// Work that faulted.
    pub const PARKED: u8 = 0xA1;
    /// How much faulted.
    pub const FAULT_COUNTS: u8 = 0xA2;
    /// Invitations of newcomers.
    pub const INVITATION: u8 = 0xC0;
    /// Members of before.
    pub const REMOVED_MEMBER: u8 = 0xC1;
    /// Quotas.
    pub const QUOTA: u8 = 0xB0;
    /// What is counted against quotas.
    pub const QUOTA_USE: u8 = 0xB1;
    /// What holds for all quotas together.
    pub const QUOTA_STATE: u8 = 0xB2;
}

/// The bounds `[start, end)` of all rows of a family.
pub fn family_range(family: u8) -> (Vec<u8>, Vec<u8>) {
    (vec![family], vec![family + 1])
}

/// The rest of a row key behind its family byte.
fn strip_family(row_key: &[u8], family: u8) -> Result<&[u8], CodecError> {
    match row_key.split_first() {
        Some((&found, rest)) if found == family => Ok(rest),
        Some((found, _)) => Err(CodecError::Malformed(format!("row family {found:#04x} instead of {family:#04x}"))),
        None => Err(CodecError::Empty),
    }
}

/// Splits eight big-endian bytes off the front.
fn split_u64(bytes: &[u8]) -> Result<(u64, &[u8]), CodecError> {
    match bytes.split_first_chunk::<8>() {
        Some((word, rest)) => Ok((u64::from_be_bytes(*word), rest)),
        None => Err(CodecError::Malformed(format!("{} bytes where a number of 8 bytes starts", bytes.len()))),
    }
}

/// A row key of two numbers behind the family byte.
fn pair_key(family: u8, first: u64, second: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(17);
    key.push(family);
    key.extend_from_slice(&first.to_be_bytes());
    key.extend_from_slice(&second.to_be_bytes());
    key
}

/// A row key of a time and a key behind the family byte.
fn timed_key(family: u8, at: ClusterMillis, key: &[u8]) -> Vec<u8> {
    let mut row_key = Vec::with_capacity(9 + key.len());
    row_key.push(family);
    row_key.extend_from_slice(&at.to_be_bytes());
    row_key.extend_from_slice(key);
    row_key
}

/// Reverses [`timed_key`].
fn decode_timed_key(row_key: &[u8], family: u8) -> Result<(ClusterMillis, &[u8]), CodecError> {
    split_u64(strip_family(row_key, family)?)
}

/// The bounds `[start, end)` of the timed keys of a family that are due at `clock`.
fn timed_range(family: u8, clock: ClusterMillis) -> (Vec<u8>, Vec<u8>) {
    let (start, family_end) = family_range(family);
    match clock.checked_add(1) {
        Some(after) => (start, timed_key(family, after, b"")),
        None => (start, family_end),
    }
}

/// Reverses [`pair_key`].
fn decode_pair_key(row_key: &[u8], family: u8) -> Result<(u64, u64), CodecError> {
    let (first, rest) = split_u64(strip_family(row_key, family)?)?;
    match split_u64(rest)? {
        (second, []) => Ok((first, second)),
        (_, rest) => Err(CodecError::Malformed(format!("{} bytes too many in a row key", rest.len()))),
    }
}
