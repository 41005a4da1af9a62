//! What met what.
//!
//! Owns the table of kinds of commands and states of their targets, which pairs of it can occur, and why the others cannot.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use quorate_machine::keyspace::bucket;
use quorate_machine::keyspace::request::{self, KeptReply};
use quorate_machine::machine::View;
use quorate_machine::types::{Action, Command, KeyRange, Step, WriteOp};

use crate::generate::owners;
use crate::kinds::{self, CHANGES, COMPARE_RANGE, LIST_RANGE, OTHERS, REMOVE_RANGE, Target};
use crate::picture::Picture;
use crate::states;
use crate::store::Store;

/// How a write came.
const MANNERS: [&str; 3] = ["", "bulk: ", "transaction: "];

/// How often each pair was met.
#[derive(Debug, Clone, Default)]
pub struct Pairs(BTreeMap<(String, &'static str), u64>);

impl Pairs {
    /// Notes what a command is about to meet.
    pub fn note(&mut self, store: &Store, picture: &Picture, command: &Command) {
        let ways = ways(store, command);
        match &command.action {
            Action::Write(op) => self.note_write("", picture, op, &ways),
            Action::Bulk(ops) => ops.iter().for_each(|op| self.note_write("bulk: ", picture, op, &ways)),
            Action::Txn(txn) => self.note_steps(picture, txn.then.iter().chain(&txn.otherwise), &ways),
            other => {
                let kind = kinds::of_other(other).expect("it is no write");
                self.count(kind, of_other(picture, other).into_iter().chain(ways));
            }
        }
    }

    /// Notes that a command was tried before it was applied.
    pub fn note_rehearsal(&mut self, command: &Command) {
        let way = || ["dry run"];
        match &command.action {
            Action::Write(op) => self.count(kinds::of_write(op), way()),
            Action::Bulk(ops) => {
                ops.iter().for_each(|op| self.count(&format!("bulk: {}", kinds::of_write(op)), way()));
            }
            Action::Txn(txn) => {
                let note = |op: &WriteOp| self.count(&format!("transaction: {}", kinds::of_write(op)), way());
                txn.all_writes().for_each(note);
                self.note_ranges_tried(txn.then.iter().chain(&txn.otherwise));
            }
            other => self.count(kinds::of_other(other).expect("it is no write"), way()),
        }
    }

    /// Notes that the state is about to go on in another cluster.
    pub fn note_epoch(&mut self, picture: &Picture) {
        self.count("new epoch", states::of_everything(picture));
    }

    /// Adds what another run has met.
    pub fn add(&mut self, other: &Self) {
        for (pair, times) in &other.0 {
            *self.0.entry(pair.clone()).or_default() += times;
        }
    }

    fn note_write(&mut self, manner: &str, picture: &Picture, op: &WriteOp, ways: &[&'static str]) {
        let kind = format!("{manner}{}", kinds::of_write(op));
        self.count(&kind, states::of_write(picture, op).into_iter().chain(ways.iter().copied()));
    }

    fn note_steps<'a>(&mut self, picture: &Picture, steps: impl Iterator<Item = &'a Step>, ways: &[&'static str]) {
        for step in steps {
            match step {
                Step::Get(_) => {}
                Step::Write(op) => self.note_write("transaction: ", picture, op, ways),
                Step::Txn(txn) => self.note_steps(picture, txn.then.iter().chain(&txn.otherwise), ways),
                Step::List(step) => self.note_range(LIST_RANGE, picture, &step.range, ways),
                Step::Remove(step) => self.note_range(REMOVE_RANGE, picture, &step.range, ways),
                Step::Branch(branch) => {
                    for comparison in &branch.comparisons {
                        self.note_range(COMPARE_RANGE, picture, &comparison.range, ways);
                    }
                    self.note_steps(picture, branch.then.iter().chain(&branch.otherwise), ways);
                }
            }
        }
    }

    fn note_ranges_tried<'a>(&mut self, steps: impl Iterator<Item = &'a Step>) {
        for step in steps {
            match step {
                Step::Get(_) | Step::Write(_) => {}
                Step::Txn(txn) => self.note_ranges_tried(txn.then.iter().chain(&txn.otherwise)),
                Step::List(_) => self.count(LIST_RANGE, ["dry run"]),
                Step::Remove(_) => self.count(REMOVE_RANGE, ["dry run"]),
                Step::Branch(branch) => {
                    branch.comparisons.iter().for_each(|_| self.count(COMPARE_RANGE, ["dry run"]));
                    self.note_ranges_tried(branch.then.iter().chain(&branch.otherwise));
                }
            }
        }
    }

    fn note_range(&mut self, kind: &str, picture: &Picture, range: &KeyRange, ways: &[&'static str]) {
        self.count(kind, states::of_range(picture, range).into_iter().chain(ways.iter().copied()));
    }

    fn count(&mut self, kind: &str, states: impl IntoIterator<Item = &'static str>) {
        for state in states {
            *self.0.entry((kind.to_owned(), state)).or_default() += 1;
        }
    }

    fn times(&self, kind: &str, state: &'static str) -> u64 {
        self.0.get(&(kind.to_owned(), state)).copied().unwrap_or(0)
    }

    /// Pairs that can occur and did not.
    pub fn missing(&self) -> Vec<(String, &'static str)> {
        let mut missing = Vec::new();
        for (kind, target) in rows() {
            for state in columns(target) {
                if cannot(&kind, target, state).is_none() && self.times(&kind, state) == 0 {
                    missing.push((kind.clone(), state));
                }
            }
        }
        missing
    }

    /// Pairs that occurred although they are said not to.
    pub fn impossible(&self) -> Vec<(String, &'static str)> {
        let targets: BTreeMap<String, Target> = rows().into_iter().collect();
        let is_said = |(kind, state): &&(String, &'static str)| {
            targets.get(kind).is_none_or(|target| cannot(kind, *target, state).is_some())
        };
        self.0.keys().filter(is_said).cloned().collect()
    }

    /// As text: a line for each kind with a count for each state, by target. A dash stands for what cannot be.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut before = None;
        for (kind, target) in rows() {
            if before.replace(target) != Some(target) {
                let columns: Vec<_> =
                    columns(target).iter().enumerate().map(|(nth, name)| format!("{} {name}", nth + 1)).collect();
                let _infallible = writeln!(text, "\n{target:?}: {}", columns.join(" · "));
            }
            let times = |state: &&'static str| match (self.times(&kind, state), cannot(&kind, target, state)) {
                (0, Some(_)) => "-".to_owned(),
                (times, _) => times.to_string(),
            };
            let cells: Vec<_> = columns(target).iter().map(|state| format!("{:>6}", times(state))).collect();
            let _infallible = writeln!(text, "{kind:28}{}", cells.concat());
        }
        for (why, pairs) in dashes() {
            let _infallible = writeln!(text, "\n- {why}: {}", pairs.join(", "));
        }
        text
    }
}

/// What never meets, by the reason.
fn dashes() -> BTreeMap<&'static str, Vec<String>> {
    let mut dashes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (kind, target) in rows() {
        for state in columns(target) {
            if let Some(why) = cannot(&kind, target, state) {
                dashes.entry(why).or_default().push(format!("{kind} × {state}"));
            }
        }
    }
    dashes
}

/// Every kind with its target.
fn rows() -> Vec<(String, Target)> {
    let of_manner = |manner: &'static str| CHANGES.map(|change| (format!("{manner}{change}"), Target::Entry));
    let mut rows: Vec<_> = MANNERS.into_iter().flat_map(of_manner).collect();
    rows.extend(OTHERS.map(|(kind, target)| (kind.to_owned(), target)));
    rows
}

fn columns(target: Target) -> Vec<&'static str> {
    [states::of_target(target), states::WAYS.to_vec()].concat()
}

/// Why a kind of command never meets a state of its target, if it does not.
fn cannot(kind: &str, target: Target, state: &'static str) -> Option<&'static str> {
    let is_way = states::WAYS.contains(&state);
    let is_own = kind.starts_with("maintain") || kind == "new epoch";
    if is_way && is_own && (state != "dry run" || kind == "new epoch") {
        return Some("the machine's own work has no request id");
    }
    if is_way {
        return None;
    }
    match (kind, target, state) {
        ("lock: release" | "lock: proclaim" | "election: resign" | "election: proclaim", _, "waited for by itself") => {
            Some("a token is of a holder")
        }
        ("lock: release" | "lock: proclaim" | "election: resign" | "election: proclaim", _, "its session is over") => {
            Some("it names no session")
        }
        (
            "lock: acquire" | "lock: leave" | "lock: listen" | "lock: hang up" | "election: campaign"
            | "election: leave" | "election: listen" | "election: hang up",
            _,
            "right token" | "another token",
        ) => Some("it names no token"),
        (_, Target::Entries, "guard holds" | "guard fails") if kind.starts_with("transaction: ") => {
            Some("it names no guard")
        }
        (_, Target::Election, "shared" | "of several slots") => Some("there is one leader"),
        ("task: claim" | "task: requeue the oldest", _, "right ticket" | "another ticket") => Some("it names no claim"),
        (_, Target::Task, "right ticket" | "another ticket")
            if !matches!(kind, "task: extend" | "task: complete" | "task: fail" | "task: plan") =>
        {
            Some("it names no claim")
        }
        (_, Target::Task, "its session is over") if kind != "task: claim" => Some("it names no session"),
        ("access: remove token", _, "in use") => Some("nothing hangs on a token"),
        ("lock: release" | "lock: proclaim" | "election: resign" | "election: proclaim", _, "quota used up") => {
            Some("it names no session")
        }
        _ => None,
    }
}

fn of_other(picture: &Picture, action: &Action) -> Vec<&'static str> {
    match action {
        Action::Write(_) | Action::Bulk(_) | Action::Txn(_) => Vec::new(),
        Action::Where(op) => states::of_entries(picture, &op.prefix, op.guard.as_deref()),
        Action::Claim(op) => states::of_entries(picture, &op.prefix, op.guard.as_deref()),
        Action::Rules(op) => states::of_collection(picture, &op.name),
        Action::Numbers(_) => vec!["any"],
        Action::Session(op) => of_session(picture, op),
        Action::Lock(op) => states::of_lock(picture, op),
        Action::Barrier(op) => states::of_barrier(picture, op),
        Action::Latch(op) => states::of_latch(picture, op),
        Action::Task(op) => states::of_task(picture, op),
        Action::Access(op) => states::of_account(picture, op),
        Action::Quota(op) => states::of_quota(picture, op.subject()),
        Action::Faults(_) | Action::Maintain(_) => states::of_everything(picture),
        Action::Members(op) => states::of_invitation(picture, op),
    }
}

fn of_session(picture: &Picture, op: &quorate_machine::types::SessionOp) -> Vec<&'static str> {
    use quorate_machine::types::SessionOp;
    match op {
        SessionOp::Create { .. } => states::of_everything(picture),
        SessionOp::Renew(ids) => ids.iter().flat_map(|id| states::of_session(picture, *id)).collect(),
        SessionOp::End(id) => states::of_session(picture, *id),
        SessionOp::CreateAs { id, .. } => states::of_session(picture, *id),
    }
}

/// How a command comes with respect to its request id.
fn ways(store: &Store, command: &Command) -> Vec<&'static str> {
    let Some(id) = &command.request_id else { return Vec::new() };
    let kept = |owner: &str| -> Option<KeptReply> {
        let clock = store.vars.clock;
        let row = (bucket::oldest_live(clock)..=bucket::at(clock))
            .rev()
            .find_map(|bucket| store.view.get(&request::row_key(bucket, owner, &id.0)).expect("memory does not fail"));
        row.map(|row| quorate_machine::codec::decode(&row).expect("a kept reply can be read"))
    };
    let owner = &*command.principal;
    match kept(owner) {
        Some(kept) if kept.fingerprint == command.fingerprint() => vec!["replayed"],
        Some(_) => vec!["id used before"],
        None if owners().iter().any(|other| *other != owner && kept(other).is_some()) => vec!["another's id"],
        None => Vec::new(),
    }
}
