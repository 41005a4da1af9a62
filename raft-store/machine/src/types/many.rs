//! Commands about many keys at once: bulks and transactions, and what applying them answers.
//!
//! Owns their form in the log. Each is one command: decided in one apply, under one request id.

use std::collections::BTreeSet;

use bincode::de::{Decode, Decoder};
use bincode::error::DecodeError;
use bincode::{Encode, impl_borrow_decode};

use super::{
    Comparison, Expect, Key, KeyRange, ListShown, ListStep, Listed, Rejection, RemoveStep, Removed, Revision, Shown,
    WriteOp, Written,
};
use crate::document::Criteria;
use crate::limits;

/// What came of one item of a bulk.
#[derive(Debug, Clone, PartialEq, Eq, Encode, bincode::Decode)]
pub struct BulkItem {
    /// Revision at which it took effect, or at which it was evaluated without effect.
    pub revision: Revision,
    /// What happened.
    pub outcome: ItemOutcome,
}

/// The outcome of an item.
#[derive(Debug, Clone, PartialEq, Eq, Encode, bincode::Decode)]
pub enum ItemOutcome {
    /// It took effect.
    Written(Written),
    /// It had no effect.
    Rejected(Rejection),
    /// Not decided: the items before it took all that a batch may, see [`limits::BATCH_EFFECT_BYTES_MAX`]. It may be asked
    /// for again under another request id. The first item of a bulk is always decided.
    Deferred,
}

impl ItemOutcome {
    /// The entry that it shows, if it shows one.
    pub(crate) fn shown_mut(&mut self) -> Option<&mut Shown> {
        match self {
            Self::Written(written) => written.previous.as_mut(),
            Self::Rejected(rejection) => rejection.current_mut(),
            Self::Deferred => None,
        }
    }

    /// The entry that it shows, if any.
    pub fn shown(&self) -> Option<&Shown> {
        match self {
            Self::Written(written) => written.previous.as_ref(),
            Self::Rejected(rejection) => rejection.current(),
            Self::Deferred => None,
        }
    }

    /// Bytes of the value that it carries.
    pub(crate) fn value_bytes(&self) -> usize {
        match self {
            Self::Written(written) => written.value_bytes(),
            Self::Rejected(rejection) => rejection.value_bytes(),
            Self::Deferred => 0,
        }
    }

    /// Why it was refused, if it was.
    pub(super) fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Written(_) | Self::Deferred => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn rejection_mut(&mut self) -> Option<&mut Rejection> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            Self::Written(_) | Self::Deferred => None,
        }
    }

    /// Bytes in which it says why, beside the value.
    pub(crate) fn detail_bytes(&self) -> usize {
        match self {
            Self::Rejected(rejection) => rejection.detail_bytes(),
            Self::Written(_) | Self::Deferred => 0,
        }
    }
}

/// Conditions on any keys, and what to do where all of them hold or one does not: all of it or nothing, at one revision.
/// Steps are taken in order, and each sees what the ones before it did.
///
/// Invariant of what is applied (see [`Txn::fault`]): no key is written twice on the way that is taken through it, so that a revision
/// stands for one version of each key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode)]
pub struct Txn {
    /// What must hold for `then`.
    pub checks: Vec<Check>,
    /// The steps where all checks hold.
    pub then: Vec<Step>,
    /// The steps where one does not.
    pub otherwise: Vec<Step>,
}

/// What must hold of one key.
#[derive(Debug, Clone, PartialEq, Eq, Encode, bincode::Decode)]
pub struct Check {
    /// The key.
    pub key: Key,
    /// Of its being there and of its token, which also holds where the entry is locked.
    pub expect: Expect,
    /// What else; also of a key without an entry.
    pub condition: Criteria,
}

/// One step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Encode)]
pub enum Step {
    /// Reads an entry.
    Get(Key),
    /// Writes one; where it is rejected, so is the whole transaction.
    Write(WriteOp),
    /// Decides again.
    Txn(Txn),
    /// Reads a range.
    List(ListStep),
    /// Removes a range; where one of its entries cannot be removed, the whole transaction is rejected.
    Remove(RemoveStep),
    /// Decides again, by comparisons.
    Branch(Branch),
}

/// Steps that are taken where all comparisons hold, and others where one does not. As [`Txn`], but for what decides, and when: a branch
/// and those that stand in it are decided together, before any of their steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode)]
pub struct Branch {
    /// What must hold for `then`.
    pub comparisons: Vec<Comparison>,
    /// The steps where all hold.
    pub then: Vec<Step>,
    /// The steps where one does not.
    pub otherwise: Vec<Step>,
}

impl Branch {
    /// The steps that are taken.
    pub fn branch(&self, succeeded: bool) -> &[Step] {
        if succeeded { &self.then } else { &self.otherwise }
    }
}

/// What is wrong with a transaction whatever the state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TxnFault {
    /// Too many checks and steps; holds how many.
    #[error("a transaction has at most {max} checks and steps, this one has {0}", max = limits::TXN_STEPS_MAX)]
    TooMany(usize),
    /// Nested too deeply.
    #[error("transactions stand at most {max} deep in each other", max = limits::TXN_DEPTH_MAX)]
    TooDeep,
    /// A key would be written twice. Holds it and the pointer to the second step.
    #[error(
        "{pointer}: {key} is written twice on this way; a transaction is one revision, which has one version of each key"
    )]
    KeyTwice {
        /// The key.
        key: Key,
        /// JSON pointer into the transaction, such as `/then/2`.
        pointer: String,
    },
}

impl Txn {
    /// One that is nothing but a branch: it stands for it, and counts neither as a step nor as a transaction around it.
    pub fn of_branch(branch: Branch) -> Self {
        Self { then: vec![Step::Branch(branch)], ..Self::default() }
    }

    /// What is wrong with it, if anything.
    pub fn fault(&self) -> Option<TxnFault> {
        let mut count = 0;
        let outermost = match (self.checks.as_slice(), self.then.as_slice(), self.otherwise.as_slice()) {
            ([], [Step::Branch(branch)], []) => Fork::of_branch(branch),
            _ => Fork::of_txn(self),
        };
        let written_once = |()| Fork::of_txn(self).written_once("", &Before::default());
        outermost.measure(1, &mut count).and_then(written_once).err()
    }

    /// Whether it can change anything.
    pub fn writes(&self) -> bool {
        any_writes(self.then.iter().chain(&self.otherwise))
    }

    /// The steps that are taken.
    pub fn branch(&self, succeeded: bool) -> &[Step] {
        if succeeded { &self.then } else { &self.otherwise }
    }

    /// How many values its answer shows, on the way on which it shows most.
    pub(super) fn values_asked(&self) -> usize {
        values_asked(&self.then).max(values_asked(&self.otherwise))
    }

    /// Every write that stands in it, whichever way leads there.
    pub fn all_writes(&self) -> impl Iterator<Item = &WriteOp> {
        let mut writes = Vec::new();
        collect_writes(self.then.iter().chain(&self.otherwise), &mut writes);
        writes.into_iter()
    }
}

fn any_writes<'a>(mut steps: impl Iterator<Item = &'a Step>) -> bool {
    steps.any(|step| match step {
        Step::Get(_) | Step::List(_) => false,
        Step::Write(_) | Step::Remove(_) => true,
        Step::Txn(txn) => txn.writes(),
        Step::Branch(branch) => any_writes(branch.then.iter().chain(&branch.otherwise)),
    })
}

/// A range may show any number, so it counts as all that an answer may.
fn values_asked(steps: &[Step]) -> usize {
    let of_step = |step: &Step| match step {
        Step::Get(_) => 1,
        Step::Write(op) => usize::from(op.return_previous),
        Step::List(list) if list.shown == ListShown::Count => 0,
        Step::List(list) => list.limit().min(limits::ASKED_VALUES_MAX),
        Step::Remove(removal) if removal.return_previous => limits::ASKED_VALUES_MAX,
        Step::Remove(_) => 0,
        Step::Txn(txn) => txn.values_asked(),
        Step::Branch(branch) => values_asked(&branch.then).max(values_asked(&branch.otherwise)),
    };
    steps.iter().map(of_step).sum()
}

fn collect_writes<'a>(steps: impl Iterator<Item = &'a Step>, writes: &mut Vec<&'a WriteOp>) {
    for step in steps {
        match step {
            Step::Get(_) | Step::List(_) | Step::Remove(_) => {}
            Step::Write(op) => writes.push(op),
            Step::Txn(txn) => collect_writes(txn.then.iter().chain(&txn.otherwise), writes),
            Step::Branch(branch) => collect_writes(branch.then.iter().chain(&branch.otherwise), writes),
        }
    }
}

/// Checks and steps with two branches, whatever decides between them.
struct Fork<'a> {
    checks: usize,
    then: &'a [Step],
    otherwise: &'a [Step],
}

/// What a part of a transaction writes, on whichever way through it.
#[derive(Default)]
struct WrittenWithin<'a> {
    keys: BTreeSet<&'a Key>,
    /// Those of them of which only the lock changes: no new version shows that.
    of_locks: BTreeSet<&'a Key>,
    ranges: Vec<&'a KeyRange>,
}

impl WrittenWithin<'_> {
    fn append(&mut self, other: Self) {
        self.keys.extend(other.keys);
        self.of_locks.extend(other.of_locks);
        self.ranges.extend(other.ranges);
    }
}

/// What is written before a step, as far as the steps before it say it.
///
/// It has the order of etcd: in a transaction within another, a range may be removed that has a key which an earlier one beside it writes.
/// Both may lie on ways of which only one is taken; where the way that is taken has both, the removal is rejected when it comes to it.
#[derive(Clone, Default)]
struct Before<'a> {
    keys: BTreeSet<&'a Key>,
    /// Those of them that no range may hold: written beside the transactions that the step stands in, not within another one, or there
    /// only locked or unlocked.
    around: BTreeSet<&'a Key>,
    ranges: Vec<&'a KeyRange>,
}

impl<'a> Before<'a> {
    /// Notes a key. `false` where it is written already.
    fn note_key(&mut self, key: &'a Key) -> bool {
        self.around.insert(key);
        self.keys.insert(key) && !self.ranges.iter().any(|range| range.contains(key.as_bytes()))
    }

    /// Notes a range that is removed; what another step removes of it is not there any more. The key in it that is written already, around
    /// this step or in one of the transactions beside it.
    fn note_range(&mut self, range: &'a KeyRange, beside: &BTreeSet<&'a Key>) -> Option<&'a Key> {
        self.ranges.push(range);
        self.around.iter().chain(beside).copied().find(|key| range.contains(key.as_bytes()))
    }
}

impl<'a> Fork<'a> {
    fn of_txn(txn: &'a Txn) -> Self {
        Self { checks: txn.checks.len(), then: &txn.then, otherwise: &txn.otherwise }
    }

    fn of_branch(branch: &'a Branch) -> Self {
        Self { checks: branch.comparisons.len(), then: &branch.then, otherwise: &branch.otherwise }
    }

    /// What stands in it in place of a step.
    fn within(step: &'a Step) -> Option<Self> {
        match step {
            Step::Txn(txn) => Some(Self::of_txn(txn)),
            Step::Branch(branch) => Some(Self::of_branch(branch)),
            Step::Get(_) | Step::Write(_) | Step::List(_) | Step::Remove(_) => None,
        }
    }

    fn measure(&self, depth: usize, count: &mut usize) -> Result<(), TxnFault> {
        if depth > limits::TXN_DEPTH_MAX {
            return Err(TxnFault::TooDeep);
        }
        *count += self.checks + self.then.len() + self.otherwise.len();
        if *count > limits::TXN_STEPS_MAX {
            return Err(TxnFault::TooMany(*count));
        }
        let mut nested = self.then.iter().chain(self.otherwise).filter_map(Fork::within);
        nested.try_for_each(|fork| fork.measure(depth + 1, count))
    }

    /// What it writes, given what is written before it.
    fn written_once(&self, place: &str, before: &Before<'a>) -> Result<WrittenWithin<'a>, TxnFault> {
        let mut all = WrittenWithin::default();
        for (name, steps) in [("then", self.then), ("else", self.otherwise)] {
            let mut before = before.clone();
            // By the transactions that stand among the steps.
            let mut beside = BTreeSet::new();
            for (at, step) in steps.iter().enumerate() {
                let pointer = || format!("{place}/{name}/{at}");
                let twice = match step {
                    Step::Get(_) | Step::List(_) => None,
                    Step::Write(op) => {
                        all.keys.insert(&op.key);
                        if op.change.is_of_lock() {
                            all.of_locks.insert(&op.key);
                        }
                        (!before.note_key(&op.key)).then_some(&op.key)
                    }
                    Step::Remove(step) => {
                        all.ranges.push(&step.range);
                        before.note_range(&step.range, &beside)
                    }
                    Step::Txn(_) | Step::Branch(_) => {
                        if let Some(fork) = Self::within(step) {
                            let written = fork.written_once(&pointer(), &before)?;
                            before.keys.extend(&written.keys);
                            before.around.extend(&written.of_locks);
                            before.ranges.extend(&written.ranges);
                            beside.extend(&written.keys);
                            all.append(written);
                        }
                        None
                    }
                };
                if let Some(key) = twice {
                    return Err(TxnFault::KeyTwice { key: key.clone(), pointer: pointer() });
                }
            }
        }
        Ok(all)
    }
}

/// A transaction that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Encode)]
pub struct TxnReply {
    /// The first check that did not hold; `None` where all did.
    pub failed: Option<CheckFailed>,
    /// What came of each step of the branch that was taken.
    pub results: Vec<StepReply>,
}

impl TxnReply {
    /// Whether all checks held.
    pub fn succeeded(&self) -> bool {
        self.failed.is_none()
    }

    pub(super) fn each_shown(&mut self, visit: &mut dyn FnMut(&mut Shown)) {
        self.failed.iter_mut().filter_map(|failed| failed.why.current_mut()).for_each(&mut *visit);
        self.results.iter_mut().for_each(|result| result.each_shown(visit));
    }

    pub(super) fn each_rejection(&mut self, visit: &mut dyn FnMut(&mut Rejection)) {
        self.failed.iter_mut().for_each(|failed| visit(&mut failed.why));
        self.results.iter_mut().for_each(|result| result.each_rejection(visit));
    }

    pub(super) fn detail_bytes(&self) -> usize {
        let nested = self.results.iter().map(StepReply::detail_bytes);
        self.failed.iter().map(|failed| failed.why.detail_bytes()).chain(nested).sum()
    }

    pub(super) fn listed_bytes(&self) -> usize {
        self.results.iter().map(StepReply::listed_bytes).sum()
    }

    pub(super) fn drop_listed(&mut self) {
        self.results.iter_mut().for_each(StepReply::drop_listed);
    }

    pub(super) fn parts(&self) -> usize {
        self.results.iter().map(StepReply::parts).sum()
    }

    pub(super) fn value_bytes(&self) -> usize {
        let results = self.results.iter().map(StepReply::value_bytes);
        self.failed.iter().map(|failed| failed.why.value_bytes()).chain(results).sum()
    }
}

/// A check that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Encode, bincode::Decode)]
pub struct CheckFailed {
    /// Which one, from 0.
    pub at: u32,
    /// Why, as a write would be told.
    pub why: Rejection,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq, Encode)]
pub enum StepReply {
    /// The entry as it was then, if there was one.
    Got(Option<Shown>),
    /// The write took effect.
    Written(Written),
    /// The nested transaction.
    Txn(TxnReply),
    /// The entries of a range.
    Listed(Listed),
    /// A range was removed.
    Removed(Removed),
    /// The branch that was taken.
    Branched(Branched),
}

impl StepReply {
    fn each_shown(&mut self, visit: &mut dyn FnMut(&mut Shown)) {
        match self {
            Self::Got(shown) => shown.iter_mut().for_each(visit),
            Self::Written(written) => written.previous.iter_mut().for_each(visit),
            Self::Txn(done) => done.each_shown(visit),
            Self::Listed(Listed { entries, .. }) | Self::Removed(Removed { entries, .. }) => {
                entries.iter_mut().for_each(|(_, shown)| visit(shown));
            }
            Self::Branched(done) => done.results.iter_mut().for_each(|result| result.each_shown(visit)),
        }
    }

    fn each_rejection(&mut self, visit: &mut dyn FnMut(&mut Rejection)) {
        match self {
            Self::Got(_) | Self::Written(_) | Self::Listed(_) | Self::Removed(_) => {}
            Self::Txn(done) => done.each_rejection(visit),
            Self::Branched(done) => done.results.iter_mut().for_each(|result| result.each_rejection(visit)),
        }
    }

    fn detail_bytes(&self) -> usize {
        match self {
            Self::Got(_) | Self::Written(_) | Self::Listed(_) | Self::Removed(_) => 0,
            Self::Txn(done) => done.detail_bytes(),
            Self::Branched(done) => done.results.iter().map(Self::detail_bytes).sum(),
        }
    }

    /// How many answers it is made of.
    fn parts(&self) -> usize {
        1 + match self {
            Self::Got(_) | Self::Written(_) => 0,
            Self::Txn(done) => done.parts(),
            Self::Listed(Listed { entries, .. }) | Self::Removed(Removed { entries, .. }) => entries.len(),
            Self::Branched(done) => done.results.iter().map(Self::parts).sum(),
        }
    }

    /// About what a row takes for all that steps have listed.
    fn listed_bytes(&self) -> usize {
        match self {
            Self::Listed(Listed { entries, .. }) => {
                entries.iter().map(|(key, _)| key.as_bytes().len() + limits::LISTED_ENTRY_BYTES).sum()
            }
            Self::Txn(done) => done.listed_bytes(),
            Self::Branched(done) => done.results.iter().map(Self::listed_bytes).sum(),
            // A write shows no more than was written before.
            Self::Got(_) | Self::Written(_) | Self::Removed(_) => 0,
        }
    }

    fn drop_listed(&mut self) {
        match self {
            Self::Listed(listed) if !listed.entries.is_empty() => {
                (listed.entries, listed.left_out) = (Vec::new(), true);
            }
            Self::Txn(done) => done.drop_listed(),
            Self::Branched(done) => done.results.iter_mut().for_each(Self::drop_listed),
            Self::Listed(_) | Self::Got(_) | Self::Written(_) | Self::Removed(_) => {}
        }
    }

    /// Whether something that it listed is left out, see [`Listed::left_out`].
    pub fn lacks_listed(&self) -> bool {
        match self {
            Self::Listed(listed) => listed.left_out,
            Self::Txn(done) => done.results.iter().any(Self::lacks_listed),
            Self::Branched(done) => done.results.iter().any(Self::lacks_listed),
            Self::Got(_) | Self::Written(_) | Self::Removed(_) => false,
        }
    }

    /// Bytes of the values that it carries.
    pub(crate) fn value_bytes(&self) -> usize {
        match self {
            Self::Got(shown) => shown.as_ref().map_or(0, Shown::value_bytes),
            Self::Written(written) => written.value_bytes(),
            Self::Txn(done) => done.value_bytes(),
            Self::Listed(Listed { entries, .. }) | Self::Removed(Removed { entries, .. }) => {
                entries.iter().map(|(_, shown)| shown.value_bytes()).sum()
            }
            Self::Branched(done) => done.results.iter().map(Self::value_bytes).sum(),
        }
    }
}

/// What a [`Branch`] came to.
#[derive(Debug, Clone, PartialEq, Eq, Encode)]
pub struct Branched {
    /// Whether all comparisons held.
    pub succeeded: bool,
    /// What came of each step that was taken.
    pub results: Vec<StepReply>,
}

/// A step that was rejected, and with it the whole transaction.
#[derive(Debug, Clone, PartialEq, Eq, Encode, bincode::Decode)]
pub struct StepRejected {
    /// JSON pointer into the transaction, such as `/then/2`; empty where it is the transaction as such.
    pub pointer: String,
    /// The key of the step.
    pub key: Option<Key>,
    /// Why.
    pub why: Rejection,
}

// By hand, since derived decoders would follow a damaged record into any depth.

/// One more than transactions may be: what stands for a branch is around it.
const DEPTH_DECODED_MAX: usize = limits::TXN_DEPTH_MAX + 1;
const TOO_DEEP: DecodeError = DecodeError::Other("transactions deeper in each other than they may be");

fn decode_list<T, D: Decoder>(
    decoder: &mut D,
    one: impl Fn(&mut D) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = usize::decode(decoder)?;
    (0..count).map(|_| one(decoder)).collect()
}

impl Txn {
    fn decode_within<C, D: Decoder<Context = C>>(decoder: &mut D, depth: usize) -> Result<Self, DecodeError> {
        let depth = depth.checked_sub(1).ok_or(TOO_DEEP)?;
        let checks = decode_list(decoder, |decoder| Check::decode(decoder))?;
        let then = decode_list(decoder, |decoder| Step::decode_within(decoder, depth))?;
        let otherwise = decode_list(decoder, |decoder| Step::decode_within(decoder, depth))?;
        Ok(Self { checks, then, otherwise })
    }
}

impl Branch {
    fn decode_within<C, D: Decoder<Context = C>>(decoder: &mut D, depth: usize) -> Result<Self, DecodeError> {
        let depth = depth.checked_sub(1).ok_or(TOO_DEEP)?;
        let comparisons = decode_list(decoder, |decoder| Comparison::decode(decoder))?;
        let then = decode_list(decoder, |decoder| Step::decode_within(decoder, depth))?;
        let otherwise = decode_list(decoder, |decoder| Step::decode_within(decoder, depth))?;
        Ok(Self { comparisons, then, otherwise })
    }
}

impl Branched {
    fn decode_within<C, D: Decoder<Context = C>>(decoder: &mut D, depth: usize) -> Result<Self, DecodeError> {
        let depth = depth.checked_sub(1).ok_or(TOO_DEEP)?;
        let succeeded = bool::decode(decoder)?;
        let results = decode_list(decoder, |decoder| StepReply::decode_within(decoder, depth))?;
        Ok(Self { succeeded, results })
    }
}

impl Step {
    fn decode_within<C, D: Decoder<Context = C>>(decoder: &mut D, depth: usize) -> Result<Self, DecodeError> {
        match u32::decode(decoder)? {
            0 => Key::decode(decoder).map(Self::Get),
            1 => WriteOp::decode(decoder).map(Self::Write),
            2 => Txn::decode_within(decoder, depth).map(Self::Txn),
            3 => ListStep::decode(decoder).map(Self::List),
            4 => RemoveStep::decode(decoder).map(Self::Remove),
            5 => Branch::decode_within(decoder, depth).map(Self::Branch),
            _ => Err(DecodeError::Other("an unknown kind of step")),
        }
    }
}

impl<Context> Decode<Context> for Txn {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Self::decode_within(decoder, DEPTH_DECODED_MAX)
    }
}

impl_borrow_decode!(Txn);

impl TxnReply {
    fn decode_within<C, D: Decoder<Context = C>>(decoder: &mut D, depth: usize) -> Result<Self, DecodeError> {
        let depth = depth.checked_sub(1).ok_or(TOO_DEEP)?;
        let failed = Option::decode(decoder)?;
        let results = decode_list(decoder, |decoder| StepReply::decode_within(decoder, depth))?;
        Ok(Self { failed, results })
    }
}

impl StepReply {
    fn decode_within<C, D: Decoder<Context = C>>(decoder: &mut D, depth: usize) -> Result<Self, DecodeError> {
        match u32::decode(decoder)? {
            0 => Option::decode(decoder).map(Self::Got),
            1 => Written::decode(decoder).map(Self::Written),
            2 => TxnReply::decode_within(decoder, depth).map(Self::Txn),
            3 => Listed::decode(decoder).map(Self::Listed),
            4 => Removed::decode(decoder).map(Self::Removed),
            5 => Branched::decode_within(decoder, depth).map(Self::Branched),
            _ => Err(DecodeError::Other("an unknown kind of step")),
        }
    }
}

impl<Context> Decode<Context> for TxnReply {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Self::decode_within(decoder, DEPTH_DECODED_MAX)
    }
}

impl_borrow_decode!(TxnReply);

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::codec;
    use crate::types::{Action, Change, ContentKind, Value};

    fn put(key: &str) -> Step {
        let change = Change::Put(Value { kind: ContentKind::Bytes, data: Vec::new() });
        Step::Write(WriteOp { change, ..WriteOp::removal(Key::new(key).unwrap(), false) })
    }

    fn delete(key: &str) -> Step {
        Step::Remove(RemoveStep { range: KeyRange::of_key(key.as_bytes()), return_previous: false })
    }

    fn nest(then: Vec<Step>, otherwise: Vec<Step>) -> Step {
        Step::Branch(Branch { comparisons: Vec::new(), then, otherwise })
    }

    fn is_twice(then: Vec<Step>) -> bool {
        match Txn::of_branch(Branch { then, ..Branch::default() }).fault() {
            None => false,
            Some(TxnFault::KeyTwice { key, .. }) => key.as_bytes() == b"a",
            Some(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_key_is_written_once_in_the_order_in_which_etcd_looks() {
        // Each as etcd 3.6.16 answered.
        let taken = [
            vec![put("a"), put("b"), delete("c")],
            vec![nest(vec![put("a")], vec![put("a")])],
            vec![nest(vec![put("a")], vec![delete("a")])],
            vec![nest(vec![put("a")], vec![]), nest(vec![], vec![delete("a")])],
            vec![nest(vec![put("a")], vec![]), nest(vec![delete("a")], vec![])],
            vec![nest(vec![put("a")], vec![]), nest(vec![nest(vec![], vec![delete("a")])], vec![])],
            vec![nest(vec![nest(vec![put("a")], vec![])], vec![]), put("b"), nest(vec![delete("a")], vec![])],
            vec![nest(vec![nest(vec![put("a")], vec![]), nest(vec![delete("a")], vec![])], vec![])],
            vec![delete("a"), nest(vec![delete("a")], vec![]), delete("a")],
        ];
        for steps in taken {
            assert!(!is_twice(steps.clone()), "{steps:?}");
        }
        let refused = [
            vec![put("a"), put("a")],
            vec![put("a"), delete("a")],
            vec![delete("a"), put("a")],
            vec![put("a"), nest(vec![], vec![delete("a")])],
            vec![nest(vec![], vec![delete("a")]), put("a")],
            vec![nest(vec![put("a")], vec![]), delete("a")],
            vec![delete("a"), nest(vec![put("a")], vec![])],
            vec![nest(vec![], vec![delete("a")]), nest(vec![put("a")], vec![])],
            vec![nest(vec![put("a")], vec![]), nest(vec![], vec![put("a")])],
            vec![nest(vec![put("a"), nest(vec![delete("a")], vec![])], vec![])],
            vec![nest(vec![nest(vec![put("a")], vec![]), delete("a")], vec![])],
            vec![nest(vec![put("b")], vec![]), put("a"), nest(vec![nest(vec![delete("a")], vec![])], vec![])],
        ];
        for steps in refused {
            assert!(is_twice(steps.clone()), "{steps:?}");
        }
    }

    /// Each transaction within doubled what was noted of those before it.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "it bounds how long it takes")]
    fn many_transactions_in_one_are_looked_at_in_time() {
        let within = || (1..limits::TXN_STEPS_MAX / 2).map(|_| nest(vec![delete("b")], vec![]));
        let began = Instant::now();
        assert!(!is_twice([delete("a")].into_iter().chain(within()).collect()));
        assert!(is_twice([put("a")].into_iter().chain(within()).chain([put("a")]).collect()));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }

    #[test]
    fn what_stands_for_a_branch_does_not_count() {
        let deep = |depth: usize| {
            let innermost = Branch { then: vec![put("a")], ..Branch::default() };
            let within = |branch, _| Branch { then: vec![Step::Branch(branch)], ..Branch::default() };
            (1..depth).fold(innermost, within)
        };
        let deepest = Txn::of_branch(deep(limits::TXN_DEPTH_MAX));
        assert_eq!(deepest.fault(), None);
        assert_eq!(codec::decode::<Txn>(&codec::encode(&deepest)).unwrap(), deepest);
        let too_deep = Txn::of_branch(deep(limits::TXN_DEPTH_MAX + 1));
        assert_eq!(too_deep.fault(), Some(TxnFault::TooDeep));
        assert!(codec::decode::<Txn>(&codec::encode(&too_deep)).is_err());
        // One with a check decides itself.
        let key = Key::new("a").unwrap();
        let check = Check { key, expect: Expect::ANY, condition: Criteria::default() };
        assert_eq!(Txn { checks: vec![check], ..deepest }.fault(), Some(TxnFault::TooDeep));
        let full = |count| Txn::of_branch(Branch { then: vec![delete("a"); count], ..Branch::default() });
        assert_eq!(full(limits::TXN_STEPS_MAX).fault(), None);
        assert!(matches!(full(limits::TXN_STEPS_MAX + 1).fault(), Some(TxnFault::TooMany(_))));
    }

    #[test]
    fn values_are_asked_for_on_the_way_that_shows_most() {
        let asked = |txn| Action::Txn(txn).values_asked();
        let get = || Step::Get(Key::new("k").expect("a key"));
        let gets = |then, otherwise| Txn {
            then: std::iter::repeat_with(get).take(then).collect(),
            otherwise: std::iter::repeat_with(get).take(otherwise).collect(),
            ..Txn::default()
        };
        assert_eq!((asked(gets(0, 0)), asked(gets(3, 0)), asked(gets(1, 2))), (0, 3, 2));
        assert_eq!(asked(gets(limits::TXN_STEPS_MAX, 0)), limits::ASKED_VALUES_MAX, "no answer is longer");
        let remove = |return_previous| {
            let step = RemoveStep { range: KeyRange::of_key(b"k"), return_previous };
            asked(Txn { then: vec![Step::Remove(step), Step::Txn(gets(0, 1))], ..Txn::default() })
        };
        assert_eq!((remove(false), remove(true)), (1, limits::ASKED_VALUES_MAX));
    }
}
