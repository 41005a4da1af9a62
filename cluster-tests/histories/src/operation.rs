//! What clients ask for, in the vocabulary of histories.
//!
//! Owns the operations that checkers understand. Is no wire type: whoever drives clients knows how an operation is asked
//! for over HTTP.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An operation of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Reads an entry.
    Get {
        /// Its key.
        key: String,
    },
    /// Reads an entry as the node that is asked knows it, however old that is.
    Local {
        /// Its key.
        key: String,
        /// It is to wait until it knows this revision.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min_revision: Option<u64>,
    },
    /// Lists all entries below a prefix, at one revision.
    List {
        /// How their keys begin.
        prefix: String,
    },
    /// Finds the documents below a prefix whose field `n` is at least this number.
    Find {
        /// How their keys begin.
        prefix: String,
        /// The least `n`.
        at_least: i64,
    },
    /// Writes one entry.
    Write(Write),
    /// Writes several entries, each on its own.
    Bulk {
        /// What is written, in order.
        writes: Vec<Write>,
    },
    /// Checks and steps that take effect together or not at all.
    Txn(Txn),
    /// Creates a session.
    OpenSession {
        /// Milliseconds without a renewal after which it ends.
        ttl_ms: u64,
    },
    /// Renews a session.
    Renew {
        /// Its id.
        session: String,
    },
    /// Ends a session.
    EndSession {
        /// Its id.
        session: String,
    },
    /// Asks for a lock, or for the leadership of an election.
    Acquire {
        /// Of which.
        hold: Hold,
        /// The session that is to have it.
        session: String,
        /// How long it keeps its place in the queue.
        wait_ms: u64,
    },
    /// Gives a lock or a leadership back.
    Release {
        /// Of which.
        hold: Hold,
        /// The fencing token, or term.
        token: u64,
    },
    /// Schedules a task.
    Schedule {
        /// The queue.
        queue: String,
        /// Its id.
        task: String,
        /// After how many milliseconds it is due.
        delay_ms: u64,
    },
    /// Claims tasks that are due.
    Claim {
        /// The queue.
        queue: String,
        /// At most so many.
        limit: u32,
        /// For how many milliseconds.
        lease_ms: u64,
    },
    /// Completes a claimed task.
    Complete {
        /// The queue.
        queue: String,
        /// Its id.
        task: String,
        /// The token of the claim.
        token: u64,
    },
    /// Gives a claimed task back as failed.
    Fail {
        /// The queue.
        queue: String,
        /// Its id.
        task: String,
        /// The token of the claim.
        token: u64,
    },
}

/// A write of one entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Its key.
    pub key: String,
    /// What is done to it.
    pub change: Change,
    /// Only while it has this token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cas: Option<u64>,
    /// Only while this token holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// Milliseconds that it lives from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Milliseconds that a lock waits for the end of another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// What a write does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Creates or overwrites.
    Put(Value),
    /// Creates.
    Insert(Value),
    /// Overwrites.
    Replace(Value),
    /// Removes.
    Remove,
    /// Adds to the field `n` of a document, and notes by whom in `by`: a patch whose outcome depends on what is there.
    Adjust {
        /// What is added.
        amount: i64,
        /// By whom: unique.
        by: String,
        /// Only while the sum of before is at least this: a condition on the document.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_least: Option<i64>,
    },
    /// Locks the entry for so many milliseconds; the answer has the key to the lock.
    Lock(u64),
    /// Ends a lock; its token is the key.
    Unlock,
}

/// A lock or an election.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// The lock of this name.
    Lock(String),
    /// The election of this name.
    Election(String),
}

/// A token that has to hold for a write to apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// What it has to hold.
    pub hold: Hold,
    /// The token.
    pub token: u64,
}

/// A transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Txn {
    /// What must hold for `then`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// What is done then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Step>,
    /// What is done otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<Step>,
}

/// What must hold of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its key.
    pub key: String,
    /// It has this token; without one it must not be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cas: Option<u64>,
}

/// A step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Reads the entry of this key.
    Get(String),
    /// Writes one.
    Write(Write),
}

impl Write {
    /// A write without conditions.
    pub fn new(key: impl Into<String>, change: Change) -> Self {
        Self { key: key.into(), change, cas: None, guard: None, ttl_ms: None, wait_ms: None }
    }

    /// Creates or overwrites.
    pub fn put(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(key, Change::Put(value.into()))
    }

    /// Creates.
    pub fn insert(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(key, Change::Insert(value.into()))
    }

    /// Removes.
    pub fn remove(key: impl Into<String>) -> Self {
        Self::new(key, Change::Remove)
    }

    /// Only while the entry has this token.
    pub fn cas(mut self, cas: u64) -> Self {
        self.cas = Some(cas);
        self
    }

    /// Only while this token holds.
    pub fn guard(mut self, hold: Hold, token: u64) -> Self {
        self.guard = Some(Guard { hold, token });
        self
    }

    /// Living for so many milliseconds.
    pub fn ttl_ms(mut self, ttl_ms: u64) -> Self {
        self.ttl_ms = Some(ttl_ms);
        self
    }

    /// Waiting for the end of another lock for so many milliseconds.
    pub fn wait_ms(mut self, wait_ms: u64) -> Self {
        self.wait_ms = Some(wait_ms);
        self
    }
}

impl Change {
    /// The value that it brings; none where it brings none.
    pub fn value(&self) -> Option<&Value> {
        match self {
            Self::Put(value) | Self::Insert(value) | Self::Replace(value) => Some(value),
            Self::Adjust { .. } | Self::Remove | Self::Lock(_) | Self::Unlock => None,
        }
    }

    /// The mark of the value that it leaves; none where it leaves none of its own.
    pub fn mark(&self) -> Option<String> {
        match self {
            Self::Adjust { by, .. } => Some(by.clone()),
            other => other.value().map(mark_of),
        }
    }

    /// Whether it leaves the value as it is.
    pub fn is_of_lock(&self) -> bool {
        matches!(self, Self::Lock(_) | Self::Unlock)
    }
}

/// By what a value is known. No two writes leave values with the same mark: documents say by whom they are, others are unique.
pub fn mark_of(value: &Value) -> String {
    value["by"].as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Txn {
    /// The steps of one branch.
    pub fn branch(&self, succeeded: bool) -> &[Step] {
        if succeeded { &self.then } else { &self.otherwise }
    }
}

impl Step {
    /// The key that it is about.
    pub fn key(&self) -> &str {
        match self {
            Self::Get(key) => key,
            Self::Write(write) => &write.key,
        }
    }
}

/// The writes among steps.
pub fn writes_of(steps: &[Step]) -> impl Iterator<Item = &Write> {
    steps.iter().filter_map(|step| match step {
        Step::Write(write) => Some(write),
        Step::Get(_) => None,
    })
}

impl Operation {
    /// Everything that it might write to an entry, both branches of a transaction included.
    pub fn writes(&self) -> Vec<&Write> {
        match self {
            Self::Write(write) => vec![write],
            Self::Bulk { writes } => writes.iter().collect(),
            Self::Txn(txn) => writes_of(&txn.then).chain(writes_of(&txn.otherwise)).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether it changes nothing and so needs no request id; a transaction without writes is a read too.
    pub fn is_read(&self) -> bool {
        match self {
            Self::Get { .. } | Self::Local { .. } | Self::List { .. } | Self::Find { .. } => true,
            Self::Txn(_) => self.writes().is_empty(),
            _ => false,
        }
    }

    /// Whether its answer is kept under its request id. To renew again is harmless, so that has none.
    pub fn is_kept(&self) -> bool {
        !self.is_read() && !matches!(self, Self::Renew { .. })
    }

    /// Its kind, for counts.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Get { .. } => "get",
            Self::Local { .. } => "local",
            Self::List { .. } => "list",
            Self::Find { .. } => "find",
            Self::Write(Write { change: Change::Lock(_), wait_ms: Some(_), .. }) => "lock_wait",
            Self::Write(Write { change: Change::Lock(_), .. }) => "lock",
            Self::Write(Write { change: Change::Unlock, .. }) => "unlock",
            Self::Write(Write { change: Change::Adjust { .. }, .. }) => "adjust",
            Self::Write(Write { cas: Some(_), .. }) => "cas",
            Self::Write(Write { change: Change::Put(_), .. }) => "put",
            Self::Write(Write { change: Change::Insert(_), .. }) => "insert",
            Self::Write(Write { change: Change::Replace(_), .. }) => "replace",
            Self::Write(Write { change: Change::Remove, .. }) => "remove",
            Self::Bulk { .. } => "bulk",
            Self::Txn(_) => "txn",
            Self::OpenSession { .. } => "open_session",
            Self::Renew { .. } => "renew",
            Self::EndSession { .. } => "end_session",
            Self::Acquire { .. } => "acquire",
            Self::Release { .. } => "release",
            Self::Schedule { .. } => "schedule",
            Self::Claim { .. } => "claim",
            Self::Complete { .. } => "complete",
            Self::Fail { .. } => "fail",
        }
    }
}
