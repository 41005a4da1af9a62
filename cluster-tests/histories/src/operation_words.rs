//! Operations in words.
//!
//! Owns how a counterexample shows what was asked for.

use std::fmt;

use super::operation::{Change, Check, Guard, Hold, Operation, Step, Write};

impl fmt::Display for Hold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(name) => write!(out, "lock {name}"),
            Self::Election(name) => write!(out, "election {name}"),
        }
    }
}

impl fmt::Display for Write {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.change {
            Change::Put(value) => write!(out, "put {} {value}", self.key)?,
            Change::Insert(value) => write!(out, "insert {} {value}", self.key)?,
            Change::Replace(value) => write!(out, "replace {} {value}", self.key)?,
            Change::Remove => write!(out, "remove {}", self.key)?,
            Change::Adjust { amount, by, at_least: None } => write!(out, "add {amount} to {} by {by}", self.key)?,
            Change::Adjust { amount, by, at_least: Some(least) } => {
                write!(out, "add {amount} to {} by {by} if it has {least}", self.key)?;
            }
            Change::Lock(ms) => write!(out, "lock {} for {ms} ms", self.key)?,
            Change::Unlock => write!(out, "unlock {}", self.key)?,
        }
        if let Some(cas) = self.cas {
            write!(out, " if cas {cas}")?;
        }
        if let Some(Guard { hold, token }) = &self.guard {
            write!(out, " while {token} has {hold}")?;
        }
        if let Some(wait_ms) = self.wait_ms {
            write!(out, ", waiting {wait_ms} ms")?;
        }
        self.ttl_ms.map_or(Ok(()), |ttl_ms| write!(out, " for {ttl_ms} ms"))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cas {
            Some(cas) => write!(out, "{} has cas {cas}", self.key),
            None => write!(out, "{} is absent", self.key),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(key) => write!(out, "get {key}"),
            Self::Write(write) => write.fmt(out),
        }
    }
}

/// A list in words.
fn list<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get { key } => write!(out, "get {key}"),
            Self::Local { key, min_revision: None } => write!(out, "get {key} as it is there"),
            Self::Local { key, min_revision: Some(least) } => write!(out, "get {key} as of {least} or later"),
            Self::List { prefix } => write!(out, "list {prefix}"),
            Self::Find { prefix, at_least } => write!(out, "find n ≥ {at_least} below {prefix}"),
            Self::Write(write) => write.fmt(out),
            Self::Bulk { writes } => write!(out, "bulk [{}]", list(writes)),
            Self::Txn(txn) => {
                let (checks, then, otherwise) = (list(&txn.checks), list(&txn.then), list(&txn.otherwise));
                write!(out, "txn if [{checks}] then [{then}] else [{otherwise}]")
            }
            Self::OpenSession { ttl_ms } => write!(out, "open a session of {ttl_ms} ms"),
            Self::Renew { session } => write!(out, "renew session {session}"),
            Self::EndSession { session } => write!(out, "end session {session}"),
            Self::Acquire { hold, session, wait_ms } => {
                write!(out, "acquire {hold} for session {session}, waiting {wait_ms} ms")
            }
            Self::Release { hold, token } => write!(out, "release {hold} of token {token}"),
            Self::Schedule { queue, task, delay_ms } => write!(out, "schedule {queue}/{task} in {delay_ms} ms"),
            Self::Claim { queue, limit, lease_ms } => write!(out, "claim {limit} of {queue} for {lease_ms} ms"),
            Self::Complete { queue, task, token } => write!(out, "complete {queue}/{task} of token {token}"),
            Self::Fail { queue, task, token } => write!(out, "fail {queue}/{task} of token {token}"),
        }
    }
}
