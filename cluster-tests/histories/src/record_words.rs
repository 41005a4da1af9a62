//! Records in words.
//!
//! Owns how a counterexample shows what clients were told.

use std::fmt;

use super::record::{Entry, Outcome, Record, Refused, Seen};

impl fmt::Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} = {} of revision {}, version {}", self.key, self.value, self.mod_revision, self.version)
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(None) => write!(out, "nothing"),
            Self::Entry(Some(entry)) => entry.fmt(out),
            Self::Written(written) => write!(out, "written, version {:?}", written.version),
            Self::Refused(Refused { code, current: Some(entry) }) => write!(out, "{code}, it is {entry}"),
            Self::Refused(Refused { code, .. }) => write!(out, "{code}"),
            Self::Session(id) => write!(out, "session {id}"),
            Self::Held { token } => write!(out, "held by token {token}"),
            other => write!(out, "{}", serde_json::to_string(other).map_err(|_| fmt::Error)?),
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.tries.iter().map(|each| each.node.to_string()).collect();
        let [call, end] = [self.call, self.end].map(|micros| micros as f64 / 1e6);
        write!(
            out,
            "[{}] {call:.6}–{end:.6} s, process {} at node {}: {} → ",
            self.id,
            self.process,
            nodes.join(", "),
            self.operation
        )?;
        match &self.outcome {
            Outcome::Decided(decided) => {
                let replayed = if decided.replayed { ", replayed" } else { "" };
                write!(out, "revision {}, index {}{replayed}: {}", decided.revision, decided.index, decided.seen)
            }
            Outcome::Failed(reason) => write!(out, "failed: {reason}"),
            Outcome::Unknown(reason) => write!(out, "unknown: {reason}"),
            Outcome::Absurd(what) => write!(out, "outside of the contract: {what}"),
        }
    }
}
