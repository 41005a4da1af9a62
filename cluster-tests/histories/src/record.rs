//! What happened: operations with what clients were told, what watches were shown, and what was done to the cluster.
//!
//! Owns the lines of a history. Times are microseconds of one monotonic clock since the history began. Never judges.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::operation::Operation;

/// Microseconds since the history began.
pub type Micros = u64;

/// One operation of one client, all its tries together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its number in the history, from 0.
    pub id: u64,
    /// Who asked. A process has at most one open operation, and is replaced by a new one once the outcome of one is unknown.
    pub process: u64,
    /// What was asked for.
    pub operation: Operation,
    /// The request id of all its tries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Before the first byte of the first try was sent.
    pub call: Micros,
    /// After the last byte of the last answer was read, or when the client gave up.
    pub end: Micros,
    /// What the client knows of it.
    pub outcome: Outcome,
    /// Each time it was sent.
    pub tries: Vec<Try>,
}

/// One time that an operation was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Try {
    /// To which node.
    pub node: u64,
    /// When.
    pub call: Micros,
    /// When its answer was there, or was waited for no longer.
    pub end: Micros,
    /// What came of it.
    pub outcome: Outcome,
}

/// What a client knows of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was decided, refusals included.
    Decided(Decided),
    /// It was certainly not carried out, and never will be.
    Failed(String),
    /// It may have been carried out, or may be later.
    Unknown(String),
    /// The answer is outside of the contract.
    Absurd(String),
}

/// An answer that an operation was decided by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    /// Revision of its effect; without one, at which it was evaluated.
    pub revision: u64,
    /// Log index of the same.
    pub index: u64,
    /// Whether it was said to be a kept answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// The rest.
    pub seen: Seen,
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// The entry, if there is one.
    Entry(Option<Entry>),
    /// The entries, by key.
    Entries(Vec<Entry>),
    /// A write took effect.
    Written(Written),
    /// It was refused.
    Refused(Refused),
    /// What came of each write of a bulk.
    Items(Vec<Item>),
    /// A transaction was carried out.
    Txn(TxnSeen),
    /// A session of this id was created, goes on, or ended.
    Session(String),
    /// The lock or the leadership is held by this token.
    Held {
        /// The fencing token.
        token: u64,
    },
    /// It has a place in the queue.
    Waiting,
    /// It was done: a lock was given back, a task was scheduled, completed or given back.
    Done,
    /// These tasks were claimed.
    Claimed(Vec<Claimed>),
}

/// An entry as an answer shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Its token.
    pub cas: Option<u64>,
    /// Revision that created it.
    pub create_revision: u64,
    /// Revision of its last change.
    pub mod_revision: u64,
    /// Changes since creation.
    pub version: u64,
}

/// What a write that took effect was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The new token; none once the entry is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cas: Option<u64>,
    /// Revision that created the entry; none once it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_revision: Option<u64>,
    /// Changes since creation; none once it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// Why something was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The code of the error catalogue.
    pub code: String,
    /// The entry as it was then, where it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Entry>,
}

/// One write of a bulk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Revision of its effect; without one, at which it was evaluated.
    pub revision: u64,
    /// What came of it.
    pub came: Came,
}

/// What came of one write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// It took effect.
    Written(Written),
    /// It did not.
    Refused(Refused),
}

/// A transaction that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TxnSeen {
    /// Whether the checks held.
    pub succeeded: bool,
    /// What came of each step of the branch taken.
    pub steps: Vec<StepSeen>,
}

/// What came of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSeen {
    /// The entry, if there was one.
    Entry(Option<Entry>),
    /// It was written.
    Written(Written),
}

/// A task that was claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claimed {
    /// Its id.
    pub task: String,
    /// The token of the claim.
    pub token: u64,
    /// Which attempt this is, from 1.
    pub attempt: u64,
}

/// A moment of a watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// Which watch.
    pub watch: u64,
    /// When.
    pub at: Micros,
    /// What it was shown.
    pub shown: Shown,
}

/// What a watch was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// It was begun: it is to show every change from this revision on of keys that begin with this.
    Begun {
        /// How the keys begin.
        prefix: String,
        /// The first revision.
        from: u64,
    },
    /// A change.
    Event(Event),
    /// Everything up to this revision was shown.
    Progress(u64),
    /// It was ended or gave up, for this reason.
    Ended(String),
}

/// A change of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Its revision.
    pub revision: u64,
    /// Its place in the revision.
    pub index: u32,
    /// The key.
    pub key: String,
    /// The entry after it; none once it is gone.
    pub entry: Option<Entry>,
}

/// A fault that was caused, from when it began until it was over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What was done.
    pub kind: String,
    /// To which node.
    pub node: u64,
    /// Since when.
    pub begin: Micros,
    /// Until when: the node is up, unpaused or reached again.
    pub end: Micros,
}

impl Record {
    /// The answer that decided it.
    pub fn decided(&self) -> Option<&Decided> {
        self.outcome.decided()
    }

    /// All answers to it, and when each was there. Mostly they agree. But a claim that found nothing leaves nothing behind, so that
    /// a later try of it may find something.
    pub fn answers(&self) -> impl Iterator<Item = (Micros, &Decided)> {
        self.tries.iter().filter_map(|each| Some((each.end, each.outcome.decided()?)))
    }

    /// Whether it did what it was for: it took effect, or truly read. What a run requires of itself is counted by this alone, while
    /// it goes on and afterwards.
    pub fn is_success(&self) -> bool {
        let Some(decided) = self.decided() else { return false };
        match &decided.seen {
            Seen::Entry(_)
            | Seen::Entries(_)
            | Seen::Written(_)
            | Seen::Session(_)
            | Seen::Held { .. }
            | Seen::Done => true,
            Seen::Items(items) => items.iter().any(|item| matches!(item.came, Came::Written(_))),
            Seen::Txn(seen) => seen.succeeded,
            Seen::Claimed(tasks) => !tasks.is_empty(),
            // Few find an entry that they can lock, and on a slow machine none in a whole phase: that it was decided must do.
            Seen::Refused(_) => matches!(self.operation.kind(), "lock" | "lock_wait"),
            Seen::Waiting => false,
        }
    }

    /// Whether it may have taken effect although nobody was told.
    pub fn is_unknown(&self) -> bool {
        self.outcome.is_unknown()
    }
}

impl Outcome {
    /// The answer, where there is one.
    pub fn decided(&self) -> Option<&Decided> {
        match self {
            Self::Decided(decided) => Some(decided),
            _ => None,
        }
    }

    /// Whether nobody knows what became of it.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// What all tries of one operation come to: a decision counts for all of them, as they have one request id. `fate_matters`
    /// says that the operation changes something; what only reads and got no answer has failed.
    pub fn of(tries: &[Try], fate_matters: bool) -> Self {
        let outcomes = || tries.iter().map(|each| &each.outcome);
        let find = |wanted: fn(&Outcome) -> bool| outcomes().find(|outcome| wanted(outcome)).cloned();
        let absurd = find(|outcome| matches!(outcome, Self::Absurd(_)));
        // What is told of a place in a queue is told as it is then, so the first answer goes with the time of the first answer.
        let decided = tries.iter().filter(|each| each.outcome.decided().is_some()).min_by_key(|each| each.end);
        let decided = decided.map(|each| each.outcome.clone());
        let unknown = find(|outcome| matches!(outcome, Self::Unknown(_)));
        let fallback = || outcomes().next_back().cloned().unwrap_or_else(|| Self::Failed("it was never sent".into()));
        match absurd.or(decided).or(unknown).unwrap_or_else(fallback) {
            Self::Unknown(reason) if !fate_matters => Self::Failed(reason),
            outcome => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Change, Hold, Txn, Write};

    #[test]
    fn who_was_refused_or_went_with_empty_hands_had_no_success() {
        let record = |operation: &Operation, outcome: Outcome| {
            let (operation, tries) = (operation.clone(), Vec::new());
            Record { id: 0, process: 0, operation, request_id: None, call: 0, end: 1, outcome, tries }
        };
        let decided = |seen| Outcome::Decided(Decided { revision: 2, index: 3, replayed: false, seen });
        let refused = || Refused { code: "locked".into(), current: None };
        let item = |came| Item { revision: 2, came };
        let (written, task) = (Written::default(), Claimed { task: "t".into(), token: 1, attempt: 1 });
        let get = Operation::Get { key: "k".into() };
        let put = Operation::Write(Write::put("k", 1));
        let lock = Operation::Write(Write::new("k", Change::Lock(1)));
        let bulk = Operation::Bulk { writes: vec![Write::put("k", 1), Write::put("l", 1)] };
        let txn = Operation::Txn(Txn::default());
        let acquire = Operation::Acquire { hold: Hold::Lock("l".into()), session: "s".into(), wait_ms: 1 };
        let claim = Operation::Claim { queue: "q".into(), limit: 1, lease_ms: 1 };
        let mixed = vec![item(Came::Refused(refused())), item(Came::Written(written.clone()))];
        for (operation, seen, is_success) in [
            (&get, Seen::Entry(None), true),
            (&put, Seen::Written(written), true),
            (&put, Seen::Refused(refused()), false),
            (&lock, Seen::Refused(refused()), true),
            (&bulk, Seen::Items(mixed), true),
            (&bulk, Seen::Items(vec![item(Came::Refused(refused()))]), false),
            (&txn, Seen::Txn(TxnSeen { succeeded: true, steps: Vec::new() }), true),
            (&txn, Seen::Txn(TxnSeen { succeeded: false, steps: Vec::new() }), false),
            (&acquire, Seen::Held { token: 2 }, true),
            (&acquire, Seen::Waiting, false),
            (&claim, Seen::Claimed(vec![task]), true),
            (&claim, Seen::Claimed(Vec::new()), false),
        ] {
            let record = record(operation, decided(seen));
            assert_eq!(record.is_success(), is_success, "{record}");
        }
        assert!(!record(&put, Outcome::Unknown("no answer".into())).is_success());
    }

    fn tries(outcomes: &[Outcome]) -> Vec<Try> {
        outcomes.iter().map(|outcome| Try { node: 1, call: 0, end: 1, outcome: outcome.clone() }).collect()
    }

    #[test]
    fn the_outcome_of_several_tries_is_what_is_known_of_all_of_them() {
        let decided = Outcome::Decided(Decided { revision: 2, index: 3, replayed: false, seen: Seen::Done });
        let (failed, unknown) = (Outcome::Failed("no leader".into()), Outcome::Unknown("no answer".into()));
        let absurd = Outcome::Absurd("status 200 and no body".into());
        for (outcomes, all) in [
            (vec![failed.clone()], &failed),
            (vec![unknown.clone(), failed.clone()], &unknown),
            (vec![unknown.clone(), decided.clone()], &decided),
            (vec![decided.clone(), unknown.clone()], &decided),
            (vec![decided.clone(), absurd.clone()], &absurd),
        ] {
            assert_eq!(&Outcome::of(&tries(&outcomes), true), all, "{outcomes:?}");
        }
        assert_eq!(Outcome::of(&tries(&[unknown]), false), Outcome::Failed("no answer".into()));
        assert!(matches!(Outcome::of(&[], true), Outcome::Failed(_)));
    }
}
