//! Names of queues and of the tasks in them.
//!
//! Owns what a name may be, and how the ids look that the machine makes.

use bincode::Encode;

use super::Revision;
use crate::limits::{QUEUE_NAME_BYTES_MAX, TASK_ID_BYTES_MAX};
use crate::rules::{NameError, checked_name, name_traits};

/// The name of a queue of tasks: 1 to [`QUEUE_NAME_BYTES_MAX`] bytes of text.
///
/// Invariant: that, because the only constructor checks it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode)]
pub struct QueueName(String);

/// The id of a task in its queue: 1 to [`TASK_ID_BYTES_MAX`] bytes of text. Those that begin with a tilde are made by the
/// machine, for tasks that were given none.
///
/// Invariant: that, because the only constructors check it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode)]
pub struct TaskId(String);

impl QueueName {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        checked_name(name.into(), QUEUE_NAME_BYTES_MAX).map(Self)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TaskId {
    /// What the ids begin with that nobody gave.
    const MADE_MARK: char = '~';

    /// Checks an id.
    pub fn new(id: impl Into<String>) -> Result<Self, NameError> {
        checked_name(id.into(), TASK_ID_BYTES_MAX).map(Self)
    }

    /// The id of the task that is the `nth`, from 0, of those scheduled at a revision.
    pub fn made(revision: Revision, nth: usize) -> Self {
        Self(format!("{}{revision}.{nth}", Self::MADE_MARK))
    }

    /// Whether it is one of those that the machine makes.
    pub fn is_made(&self) -> bool {
        self.0.starts_with(Self::MADE_MARK)
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

name_traits!(QueueName);
name_traits!(TaskId);
