//! Rows of timed tasks: `0x80` to `0x84`, each with the escaped name of the queue in front.
//!
//! Owns their bytes. A task has one row with all of it, and where its state asks for it another one by which it is found: by
//! the time it is due, by the time it died, or as one that is to be planned. A claim and a kept id are found by their timers.

use bincode::{Decode, Encode};

use super::{family, named, split_u64};
use crate::codec::CodecError;
use crate::types::{QueueName, TaskHead, TaskId, Value, WallMillis};

/// A task. Encode and decode with [`crate::codec`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct TaskRow {
    /// What is known of it.
    pub head: TaskHead,
    /// What it is about; nothing once it is done.
    pub payload: Value,
}

/// A queue: how many of its tasks are how far. Encode and decode with [`crate::codec`].
///
/// Invariant: the first five are the numbers of rows in these states. No row in `0x81` is before `due_from`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct QueueRow {
    /// Tasks that wait.
    pub scheduled: u64,
    /// Tasks that somebody works on.
    pub claimed: u64,
    /// Tasks that are not tried any more.
    pub dead: u64,
    /// Tasks that wait for a plan.
    pub unplanned: u64,
    /// Completed tasks whose ids are still in use.
    pub kept: u64,
    /// Completions so far, of each occurrence.
    pub completed: u64,
    /// Failed attempts so far, claims that ran out too.
    pub failed: u64,
    /// Tasks that died so far, occurrences given up too.
    pub died: u64,
    /// Tasks that were cancelled so far.
    pub cancelled: u64,
    /// The last number given to a task.
    pub last_number: u64,
    /// A lower bound of the rows by time: a claim begins to look there, and not among the traces of all that were claimed.
    pub due_from: (WallMillis, u64),
}

/// The row key of a task.
pub fn row_key(queue: &QueueName, id: &TaskId) -> Vec<u8> {
    with_id(family::TASK, queue, id)
}

/// Reverses [`row_key`].
pub fn decode_key(row_key: &[u8]) -> Result<(QueueName, TaskId), CodecError> {
    split_id(row_key, family::TASK)
}

/// The bounds `[start, end)` of all tasks of a queue.
pub fn of_queue(queue: &QueueName) -> (Vec<u8>, Vec<u8>) {
    named::bounds(family::TASK, queue.as_str().as_bytes())
}

/// What a timer about a task has as its subject.
pub fn subject(queue: &QueueName, id: &TaskId) -> Vec<u8> {
    row_key(queue, id).split_off(1)
}

/// Reverses [`subject`].
pub fn of_subject(subject: &[u8]) -> Result<(QueueName, TaskId), CodecError> {
    decode_key(&[&[family::TASK], subject].concat())
}

/// The row key of a scheduled task among those of its queue by time.
pub fn due_key(queue: &QueueName, due: WallMillis, number: u64) -> Vec<u8> {
    timed(family::TASK_DUE, queue, due, number)
}

/// Time and number of such a row.
pub fn decode_due(row_key: &[u8]) -> Result<(WallMillis, u64), CodecError> {
    split_timed(row_key, family::TASK_DUE)
}

/// The queue of such a row, or of a place among such rows.
pub fn queue_of_due(place: &[u8]) -> Result<QueueName, CodecError> {
    queue_of(named::split(place, family::TASK_DUE)?.0)
}

/// The bounds `[start, end)` of the rows of a queue from a place on; of those only that are due at `wall`, if given.
pub fn due_range(queue: &QueueName, from: (WallMillis, u64), wall: Option<WallMillis>) -> (Vec<u8>, Vec<u8>) {
    let (_, queue_end) = named::bounds(family::TASK_DUE, queue.as_str().as_bytes());
    let end = wall.and_then(|wall| wall.checked_add(1)).map(|after| due_key(queue, after, 0));
    let start = due_key(queue, from.0, from.1);
    let end = end.unwrap_or(queue_end);
    // A lower bound may lie behind what is due.
    if start < end { (start, end) } else { (end.clone(), end) }
}

/// The row key of a dead task among those of its queue by time.
pub fn dead_key(queue: &QueueName, at: WallMillis, number: u64) -> Vec<u8> {
    timed(family::TASK_DEAD, queue, at, number)
}

/// Time and number of such a row.
pub fn decode_dead(row_key: &[u8]) -> Result<(WallMillis, u64), CodecError> {
    split_timed(row_key, family::TASK_DEAD)
}

/// The bounds `[start, end)` of the dead tasks of a queue.
pub fn dead_range(queue: &QueueName) -> (Vec<u8>, Vec<u8>) {
    named::bounds(family::TASK_DEAD, queue.as_str().as_bytes())
}

/// The id that stands in a row by time.
pub fn decode_id(row: &[u8]) -> Result<TaskId, CodecError> {
    let text = std::str::from_utf8(row).map_err(|error| CodecError::Malformed(format!("the id of a task: {error}")))?;
    TaskId::new(text).map_err(|error| CodecError::Malformed(error.to_string()))
}

/// The row key of a task that is to be planned.
pub fn unplanned_key(queue: &QueueName, id: &TaskId) -> Vec<u8> {
    with_id(family::TASK_UNPLANNED, queue, id)
}

/// Reverses [`unplanned_key`].
pub fn decode_unplanned(row_key: &[u8]) -> Result<(QueueName, TaskId), CodecError> {
    split_id(row_key, family::TASK_UNPLANNED)
}

/// The row key of a queue.
pub fn queue_key(queue: &QueueName) -> Vec<u8> {
    named::start(family::QUEUE, queue.as_str().as_bytes(), 0)
}

/// Reverses [`queue_key`].
pub fn decode_queue(row_key: &[u8]) -> Result<QueueName, CodecError> {
    match named::split(row_key, family::QUEUE)? {
        (name, []) => queue_of(name),
        (_, rest) => Err(CodecError::Malformed(format!("{} bytes too many in a row key", rest.len()))),
    }
}

fn with_id(family: u8, queue: &QueueName, id: &TaskId) -> Vec<u8> {
    let id = id.as_str().as_bytes();
    let mut row_key = named::start(family, queue.as_str().as_bytes(), id.len());
    row_key.extend_from_slice(id);
    row_key
}

fn split_id(row_key: &[u8], family: u8) -> Result<(QueueName, TaskId), CodecError> {
    let (queue, id) = named::split(row_key, family)?;
    Ok((queue_of(queue)?, decode_id(id)?))
}

fn queue_of(name: Vec<u8>) -> Result<QueueName, CodecError> {
    let text = String::from_utf8(name).map_err(|error| CodecError::Malformed(format!("a queue: {error}")))?;
    QueueName::new(text).map_err(|error| CodecError::Malformed(error.to_string()))
}

fn timed(family: u8, queue: &QueueName, at: WallMillis, number: u64) -> Vec<u8> {
    let mut row_key = named::start(family, queue.as_str().as_bytes(), 16);
    row_key.extend_from_slice(&at.to_be_bytes());
    row_key.extend_from_slice(&number.to_be_bytes());
    row_key
}

fn split_timed(row_key: &[u8], family: u8) -> Result<(WallMillis, u64), CodecError> {
    let (_, rest) = named::split(row_key, family)?;
    let (at, rest) = split_u64(rest)?;
    match split_u64(rest)? {
        (number, []) => Ok((at, number)),
        (_, rest) => Err(CodecError::Malformed(format!("{} bytes too many in a row key", rest.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_made() {
        let queue = QueueName::new("a\0b/c").expect("a name");
        for id in ["x", "\0", "~12.0", "a/b"] {
            let id = TaskId::new(id).expect("an id");
            assert_eq!(decode_key(&row_key(&queue, &id)), Ok((queue.clone(), id.clone())));
            assert_eq!(of_subject(&subject(&queue, &id)), Ok((queue.clone(), id.clone())));
            assert_eq!(decode_unplanned(&unplanned_key(&queue, &id)), Ok((queue.clone(), id.clone())));
            assert_eq!(decode_id(id.as_str().as_bytes()), Ok(id));
        }
        assert_eq!(decode_due(&due_key(&queue, 7, u64::MAX)), Ok((7, u64::MAX)));
        assert_eq!(queue_of_due(&[due_key(&queue, 7, 1), vec![0]].concat()), Ok(queue.clone()));
        assert_eq!(decode_dead(&dead_key(&queue, u64::MAX, 0)), Ok((u64::MAX, 0)));
        assert_eq!(decode_queue(&queue_key(&queue)), Ok(queue));
    }

    #[test]
    fn what_is_due_lies_within_its_range_and_what_is_not_does_not() {
        let queue = QueueName::new("q").expect("a name");
        let within = |due, from, wall| {
            let (start, end) = due_range(&queue, from, wall);
            let row_key = due_key(&queue, due, 5);
            start <= row_key && row_key < end
        };
        assert!(within(10, (0, 0), Some(10)) && within(10, (10, 5), Some(10)) && within(u64::MAX, (0, 0), None));
        assert!(!within(10, (0, 0), Some(9)) && !within(10, (10, 6), Some(10)) && within(10, (0, 0), Some(u64::MAX)));
        let (start, end) = due_range(&queue, (20, 0), Some(10));
        assert_eq!(start, end, "a bound behind what is due leaves nothing");
    }
}
