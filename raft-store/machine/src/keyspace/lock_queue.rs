//! Rows of locks and elections: `0x73`, lock → [`LockHead`]; `0x74`, escaped lock, token → [`HolderRow`]; `0x75`, escaped
//! lock, place → [`WaiterRow`]; and `0x76`, escaped name, revision → who leads an election since then.
//!
//! Owns their bytes. A lock is there as its [`LockName::to_bytes`], an election among the last as its name.

use bincode::{Decode, Encode};

use super::{family, named, strip_family};
use crate::codec::CodecError;
use crate::mutants::Mutant;
use crate::types::{ClusterMillis, LockMode, LockName, LockSpace, Name, Revision, SessionId, Value, WallMillis};

/// What is known of a lock beside its parties.
///
/// Invariant: it is there exactly while it has a holder, a waiter, or `not_before`; `holders` and `waiters` count the
/// rows; all holders have the same mode, and not more than `slots` of them hold it exclusively. Every token is smaller than
/// the present revision, and whoever waits could not be granted: see [`LockHead::admits`]; or a timer says that it will be.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct LockHead {
    /// Most exclusive holders.
    pub slots: u32,
    /// How many hold it.
    pub holders: u32,
    /// How they share; of no meaning while there is none.
    pub mode: LockMode,
    /// How many wait.
    pub waiters: u32,
    /// Cluster clock before which nobody gets it; there is a timer then.
    pub not_before: Option<ClusterMillis>,
    /// No waiter has a place before this: where to look for the first, and not among the traces of all that waited before.
    pub first_place: Revision,
}

impl LockHead {
    /// Whether one more could hold it now, were it the first in the queue.
    pub fn admits(&self, mode: LockMode) -> bool {
        let slots = self.slots + u32::from(Mutant::OneSlotTooMany.acts());
        let has_room = match (self.holders, self.mode, mode) {
            (0, ..) | (_, LockMode::Shared, LockMode::Shared) => true,
            (holders, LockMode::Exclusive, LockMode::Exclusive) => holders < slots,
            _ => false,
        };
        self.not_before.is_none() && has_room
    }

    /// Whether there is nothing left to know.
    pub fn is_idle(&self) -> bool {
        self.holders == 0 && self.waiters == 0 && self.not_before.is_none()
    }
}

/// A party that holds a lock. Its token is in the row key.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HolderRow {
    /// Its session.
    pub session: SessionId,
    /// How it shares.
    pub mode: LockMode,
    /// How long nobody gets the lock once its session was not renewed, milliseconds.
    pub delay_ms: u64,
    /// What a leader says of itself.
    pub value: Option<Value>,
    /// Wall clock at which it got the lock.
    pub since: WallMillis,
    /// The number of the question that it was granted to, if that was ready to wait, until a command told its session: who hung up
    /// meanwhile knows nothing of it.
    pub unheard: Option<u64>,
}

/// A party that waits for a lock. Its place is in the row key.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WaiterRow {
    /// What it will be as a holder; `since` is when it began to wait.
    pub party: HolderRow,
    /// Cluster clock at which it gives up; there is a timer then.
    pub until: ClusterMillis,
    /// The number of the question that its session asked last. Numbers grow.
    pub asked: u64,
    /// Whether nobody listens to what comes of it.
    pub hung_up: bool,
}

/// The row key of a lock. Also good as a bound.
pub fn head_key(lock: &LockName) -> Vec<u8> {
    [&[family::LOCK_HEAD][..], &lock.to_bytes()].concat()
}

/// The bounds `[start, end)` of the locks of a space, in order of names.
pub fn heads_of(space: LockSpace) -> (Vec<u8>, Vec<u8>) {
    let number = space.number();
    (vec![family::LOCK_HEAD, number], vec![family::LOCK_HEAD, number + 1])
}

/// Reverses [`head_key`].
pub fn decode_head_key(row_key: &[u8]) -> Result<LockName, CodecError> {
    lock_of(strip_family(row_key, family::LOCK_HEAD)?)
}

/// The row key of a holder.
pub fn holder_key(lock: &LockName, token: Revision) -> Vec<u8> {
    named::numbered(family::HOLDER, &lock.to_bytes(), token)
}

/// The row key of a waiter.
pub fn waiter_key(lock: &LockName, place: Revision) -> Vec<u8> {
    named::numbered(family::WAITER, &lock.to_bytes(), place)
}

/// Reverses [`holder_key`]: lock and token.
pub fn decode_holder(row_key: &[u8]) -> Result<(LockName, Revision), CodecError> {
    let (lock, token) = named::split_numbered(row_key, family::HOLDER)?;
    Ok((lock_of(&lock)?, token))
}

/// Reverses [`waiter_key`]: lock and place.
pub fn decode_waiter(row_key: &[u8]) -> Result<(LockName, Revision), CodecError> {
    let (lock, place) = named::split_numbered(row_key, family::WAITER)?;
    Ok((lock_of(&lock)?, place))
}

/// The bounds `[start, end)` of the holders of a lock, in order of tokens.
pub fn holders_of(lock: &LockName) -> (Vec<u8>, Vec<u8>) {
    named::bounds(family::HOLDER, &lock.to_bytes())
}

/// The bounds `[start, end)` of the waiters of a lock, in order of places.
pub fn waiters_of(lock: &LockName) -> (Vec<u8>, Vec<u8>) {
    named::bounds(family::WAITER, &lock.to_bytes())
}

/// What the timer of a place has as its subject: the end of the row key of the waiter.
pub fn place_subject(lock: &LockName, place: Revision) -> Vec<u8> {
    waiter_key(lock, place).split_off(1)
}

/// Reverses [`place_subject`].
pub fn decode_place(subject: &[u8]) -> Result<(LockName, Revision), CodecError> {
    decode_waiter(&[&[family::WAITER][..], subject].concat())
}

/// The lock that some bytes stand for.
pub fn lock_of(bytes: &[u8]) -> Result<LockName, CodecError> {
    LockName::from_bytes(bytes).ok_or_else(|| CodecError::Malformed(format!("no lock: {}", bytes.escape_ascii())))
}

/// The row key of who leads an election since a revision. The row is `Option<Elected>`, encoded.
pub fn elected_key(election: &Name, revision: Revision) -> Vec<u8> {
    named::numbered(family::ELECTED, election.as_str().as_bytes(), revision)
}

/// Reverses [`elected_key`]: the name's bytes and the revision.
pub fn decode_elected(row_key: &[u8]) -> Result<(Vec<u8>, Revision), CodecError> {
    named::split_numbered(row_key, family::ELECTED)
}

/// The bounds `[start, end)` of what is kept of an election, in order of revisions.
pub fn elected_of(election: &Name) -> (Vec<u8>, Vec<u8>) {
    named::bounds(family::ELECTED, election.as_str().as_bytes())
}
