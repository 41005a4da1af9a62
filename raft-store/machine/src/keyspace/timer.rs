//! Rows of timers: `0x70`, time, kind, subject → nothing.
//!
//! Owns their bytes and kinds. A timer is a moment of cluster clock at which the machine does something by itself, as the
//! first thing of the next batch; what that is belongs to its kind.

use super::{family, split_u64, strip_family, timed_key, timed_range};
use crate::codec::CodecError;
use crate::types::{ClusterMillis, WallMillis};

/// What a timer is about. The numbers are on disk and never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TimerKind {
    /// A session may be over. Its subject is the session's id.
    Session = 1,
    /// A lock may be given again after an unclean end. Its subject is the name.
    LockDelay = 2,
    /// A place in the queue of a lock is given up. Its subject is the name and the place.
    Place = 3,
    /// The claim of a task is over. Its subject is the queue and the task.
    TaskLease = 4,
    /// The id of a completed task is given free. Its subject is the queue and the task.
    TaskKept = 5,
    /// A lock admits who waits for it and was not given yet. Its subject is the name.
    Grant = 6,
    /// Tasks were claimed with a session that ended, and are not given back yet. Its subject is the session's id.
    SessionTasks = 7,
    /// The wall clock was walked back, and tasks that wait are not all looked at yet. Its subject is an [`ahead_subject`].
    TasksAhead = 8,
}

impl TimerKind {
    fn of(byte: u8) -> Option<Self> {
        use TimerKind::*;
        let kinds = [Session, LockDelay, Place, TaskLease, TaskKept, Grant, SessionTasks, TasksAhead];
        kinds.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The row key of a timer.
pub fn row_key(at: ClusterMillis, kind: TimerKind, subject: &[u8]) -> Vec<u8> {
    let mut row_key = Vec::with_capacity(10 + subject.len());
    row_key.push(family::TIMER);
    row_key.extend_from_slice(&at.to_be_bytes());
    row_key.push(kind as u8);
    row_key.extend_from_slice(subject);
    row_key
}

/// A lower bound of the timers from a moment on.
pub fn bound(at: ClusterMillis) -> Vec<u8> {
    timed_key(family::TIMER, at, b"")
}

/// Reverses [`row_key`].
pub fn decode_key(row_key: &[u8]) -> Result<(ClusterMillis, TimerKind, &[u8]), CodecError> {
    let (at, rest) = split_u64(strip_family(row_key, family::TIMER)?)?;
    match rest.split_first() {
        Some((&byte, subject)) => match TimerKind::of(byte) {
            Some(kind) => Ok((at, kind, subject)),
            None => Err(CodecError::Malformed(format!("a timer of the unknown kind {byte}"))),
        },
        None => Err(CodecError::Malformed("a timer without a kind".into())),
    }
}

/// The moment of a timer, of whatever kind.
pub fn time_of(row_key: &[u8]) -> Result<ClusterMillis, CodecError> {
    Ok(split_u64(strip_family(row_key, family::TIMER)?)?.0)
}

/// The subject of a wall clock that was walked back: where it was before, and the row key from which on queues or tasks are to be looked at.
pub fn ahead_subject(before: WallMillis, place: &[u8]) -> Vec<u8> {
    [before.to_be_bytes().as_slice(), place].concat()
}

/// Reverses [`ahead_subject`].
pub fn decode_ahead(subject: &[u8]) -> Result<(WallMillis, &[u8]), CodecError> {
    split_u64(subject)
}

/// The bounds `[start, end)` of what is due at `clock`.
pub fn due_range(clock: ClusterMillis) -> (Vec<u8>, Vec<u8>) {
    timed_range(family::TIMER, clock)
}
