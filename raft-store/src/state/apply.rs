//! Applying log entries: the machine's answers, then one atomic write, then everybody may see it.
//!
//! Owns the order of these steps, the check that entries come without gaps, and the one that a group of them comes to what each does by
//! itself. Knows no openraft trait.

#![expect(clippy::disallowed_methods, reason = "measures how long a group took; nothing of it is replicated")]

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};

use openraft::EntryPayload;
use quorate_feed::ChangeSet;
use quorate_machine::codec::CodecError;
use quorate_machine::machine::{self, Applied, Applier, Bounds, Contained, ContainedWork, Fault, Layered, Vars, View};
use quorate_machine::query::StateFault;
use quorate_machine::types::{NodeDisk, Revision, WallMillis};
use quorate_machine::{command_codec, limits};
use quorate_threads::watchdog;

use super::db::LatestView;
use super::digests;
use super::shared::{Shared, position_of};
use crate::meta::AppliedRecord;
use crate::raft::wire::{LogIdRecord, MemberRecord, MembershipRecord, StoredMembershipRecord};
use crate::raft::{BatchReply, EncodedBatch, LogEntry};

/// A group is closed once what its entries read, write and answer takes so many bytes: about a thousand small writes, or some ten
/// milliseconds. The thread is the one that tells of this node and hears the leader: a node that applied much at once, as after
/// its start, was silent for so long that another one was elected. One entry may take more.
const GROUP_EFFECT_BYTES_MAX: usize = limits::BATCH_EFFECT_BYTES_MAX / 8;

/// Twice what a release build takes for a MiB of effect, a thousand small writes, on a slow machine.
const COST_OF_MIB: Duration = Duration::from_millis(20);

/// The only writer of the state.
pub(crate) struct Committer {
    shared: Arc<Shared>,
    /// The applied row on disk, unless `is_unsound`.
    record: AppliedRecord,
    /// Set while a group is under way: it stays so after a fault, and then nothing may be applied any more.
    is_unsound: bool,
}

/// Entries that are decided, and not written.
///
/// They are committed, and what they answer is true whatever becomes of this node: it may be told before the write shows it.
#[must_use = "nothing can be applied before it is written"]
pub(crate) struct Decided {
    applied: Applied,
    /// The revision before them.
    before: Revision,
    entries: u64,
    /// What they read, write and answer.
    bytes: usize,
    /// Time that it took.
    spent: Duration,
}

impl Decided {
    /// What the processor may take to decide as much, and again to write it. It follows from what was asked for, which is bounded, and not
    /// from how much is stored.
    pub(crate) fn cost(&self) -> Duration {
        COST_OF_MIB.mul_f64(self.bytes as f64 / f64::from(1 << 20))
    }
}

impl Committer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let record = shared.applied();
        Self { shared, record, is_unsound: false }
    }

    /// The applied row on disk; also what the next entries are applied to.
    pub(crate) fn reload(&mut self) -> Result<&AppliedRecord, StateFault> {
        self.record = self.shared.db().applied()?;
        self.is_unsound = false;
        Ok(&self.record)
    }

    /// Index of the last entry applied; 0 also while there is none.
    pub(crate) fn index(&self) -> u64 {
        self.record.log_id.map_or(0, |id| id.index)
    }

    /// What was applied, or decided and not written yet.
    pub(crate) fn record(&self) -> &AppliedRecord {
        &self.record
    }

    /// Decides entries and writes them. When it returns they are visible to all readers. The rest as [`Self::decide`].
    pub(crate) fn apply<'e>(
        &mut self,
        entries: impl IntoIterator<Item = &'e LogEntry, IntoIter: Clone>,
    ) -> Result<Vec<BatchReply>, StateFault> {
        let (answers, decided) = self.decide(entries)?;
        self.write(decided)?;
        Ok(answers)
    }

    /// Decides entries as one group, up to the one that makes it [`GROUP_EFFECT_BYTES_MAX`] large or at which digests are
    /// compared; one answer for each decided. What faults on every node alike is contained. An error means that this node must
    /// stop.
    pub(crate) fn decide<'e>(
        &mut self,
        entries: impl IntoIterator<Item = &'e LogEntry, IntoIter: Clone>,
    ) -> Result<(Vec<BatchReply>, Decided), StateFault> {
        if std::mem::replace(&mut self.is_unsound, true) {
            return Err(StateFault::new("applying failed before; the node must stop"));
        }
        let begin = Instant::now();
        let db = self.shared.db_owned();
        let view = LatestView(&db);
        let entries = entries.into_iter();
        let bounds = self.shared.bounds;
        // A fault that is left is of this node alone, or of a newer build.
        let decided = machine::applying(|is_containing| {
            let applier = Applier::new(&view, self.record.vars.clone()).within(bounds).containing(is_containing);
            apply_group(Reached::new(&self.record), applier, entries.clone())
        });
        let (reached, answers, mut applied, bytes) = decided??;
        if self.shared.checks_groups && answers.len() > 1 {
            let before = (&self.record, self.record.vars.clone(), bounds);
            watchdog::aside(|| check_group(&view, before, entries.clone().zip(&answers), &applied))?;
        }
        self.tell_contained(&applied.contained);
        let Reached { log_id, membership, before: _ } = reached;
        self.record.log_id = log_id;
        if let Some(membership) = membership {
            self.record.membership = membership;
        }
        let before = std::mem::replace(&mut self.record.vars, std::mem::take(&mut applied.vars)).revision;
        let entries = answers.len() as u64;
        Ok((answers, Decided { applied, before, entries, bytes, spent: begin.elapsed() }))
    }

    /// Each contained fault is a bug that somebody must hear of.
    fn tell_contained(&self, contained: &[Contained]) {
        self.shared.work.contained.fetch_add(contained.len() as u64, Relaxed);
        for Contained { index, what, fault } in contained {
            match what {
                ContainedWork::Command(nth) => {
                    tracing::error!(index, nth, %fault, "a command faulted: it was taken back and answered as internal, see /v1/cluster/faults");
                }
                ContainedWork::Work(row_key) => {
                    let work = row_key.escape_ascii();
                    tracing::error!(index, %work, %fault, "work of the store's own faulted: it was set aside, see /v1/cluster/faults");
                }
            }
        }
    }

    /// What was decided is about to be answered: [`super::StateReader::wait_answered`] waits for it from now on.
    pub(crate) fn before_answers(&self) {
        self.shared.answered.store(self.index(), Release);
    }

    /// Writes what was decided and shows it to all readers. After a crash either all or none of it is there. An error means that
    /// this node must stop.
    pub(crate) fn write(&mut self, decided: Decided) -> Result<(), StateFault> {
        assert!(self.is_unsound, "only what was decided last is written");
        let begin = Instant::now();
        let Decided { applied, before, entries, bytes: _, spent } = decided;
        failpoint!("state-before-write");
        let db = self.shared.db_owned();
        db.counts.note(&applied.changed, before, self.record.vars.revision);
        self.shared.publish(&self.record, || db.write(&applied, &self.record))?;
        failpoint!("state-after-write");
        self.is_unsound = false;
        self.shared.work.apply.observe(spent + begin.elapsed());
        self.shared.work.applied_entries.fetch_add(entries, Relaxed);
        let at = position_of(&self.record);
        self.shared.digests.note(at.index, self.record.vars.digest());
        let (changes, names) = (applied.changed, &applied.woken);
        let (after, oldest) = (at.revision, at.oldest_revision);
        self.shared.feed.tell(ChangeSet { changes, names, before, after, oldest });
        Ok(())
    }
}

/// How far a group has come, beside the machine.
#[derive(Clone)]
struct Reached<'r> {
    log_id: Option<LogIdRecord>,
    /// The last membership in the group, if there is one.
    membership: Option<StoredMembershipRecord>,
    /// The membership before the group.
    before: &'r MembershipRecord,
}

impl<'r> Reached<'r> {
    fn new(record: &'r AppliedRecord) -> Self {
        Self { log_id: record.log_id, membership: None, before: &record.membership.membership }
    }

    /// The members as of the last entry.
    fn disks(&self) -> Vec<NodeDisk> {
        disks_of(self.membership.as_ref().map_or(self.before, |stored| &stored.membership))
    }
}

/// The members with their disks, in order.
fn disks_of(membership: &MembershipRecord) -> Vec<NodeDisk> {
    let disk = |(id, member): (&u64, &MemberRecord)| NodeDisk { node_id: *id, incarnation: member.incarnation };
    membership.nodes.iter().map(disk).collect()
}

type Group<'r> = (Reached<'r>, Vec<BatchReply>, Applied, usize);

/// Applies entries as one group, as far as [`Committer::decide`] says. The outer error is a fault of the machine.
fn apply_group<'e, 'r>(
    mut reached: Reached<'r>,
    mut applier: Applier<'_, LatestView<'_>>,
    entries: impl Iterator<Item = &'e LogEntry>,
) -> Result<Result<Group<'r>, StateFault>, Fault> {
    let mut answers = Vec::new();
    for entry in entries {
        match apply_entry(&mut reached, &mut applier, entry)? {
            Ok(answer) => answers.push(answer),
            Err(fault) => return Ok(Err(StateFault::because(format!("log entry {}", entry.log_id), fault))),
        }
        if applier.taken_bytes() >= GROUP_EFFECT_BYTES_MAX || digests::is_mark(entry.log_id.index) {
            break;
        }
    }
    let bytes = applier.taken_bytes();
    Ok(Ok((reached, answers, applier.finish(), bytes)))
}

/// Applies the entries of a group one by one, each to what those before it came to, and compares: answers, scalars and rows must be what
/// the group came to, or this node would differ from others that group the same entries otherwise.
fn check_group<'e, 'a>(
    view: &LatestView<'_>,
    (record, mut vars, bounds): (&AppliedRecord, Vars, Bounds),
    entries: impl Iterator<Item = (&'e LogEntry, &'a BatchReply)>,
    group: &Applied,
) -> Result<(), StateFault> {
    let mut rows = Layered::new(view);
    let mut reached = Reached::new(record);
    for (entry, answer) in entries {
        let one = machine::applying(|is_containing| {
            let mut reached = reached.clone();
            let mut applier = Applier::new(&rows, vars.clone()).within(bounds).containing(is_containing);
            let answer = apply_entry(&mut reached, &mut applier, entry)?;
            Ok((reached, answer, applier.finish()))
        });
        let (one_reached, one_answer, applied) = one?;
        let one_answer = one_answer?;
        if one_answer.replies != answer.replies {
            let (group, one) = (&answer.replies, &one_answer.replies);
            let differ = group.iter().zip(one).find(|(group, one)| group != one);
            return Err(StateFault::new(format!(
                "log entry {} comes to something else by itself than among others: {differ:.1000?}",
                entry.log_id
            )));
        }
        reached = one_reached;
        rows.write(applied.writes);
        vars = applied.vars;
    }
    let last = reached.log_id;
    if vars != group.vars {
        let (one, group) = (&vars, &group.vars);
        return Err(StateFault::new(format!(
            "up to {last:?}, entries one by one come to {one:?}, together to {group:?}"
        )));
    }
    match rows.difference(&group.writes) {
        None => Ok(()),
        Some(row_key) => {
            let row_key = row_key.escape_ascii();
            Err(StateFault::new(format!(
                "up to {last:?}, entries one by one leave another row {row_key} than together"
            )))
        }
    }
}

/// Wall clock of the log after an entry, as applying it has it, for whoever does not apply it.
///
/// # Errors
/// Its batch cannot be decoded.
pub fn wall_after(before: WallMillis, entry: &LogEntry) -> Result<WallMillis, CodecError> {
    match &entry.payload {
        EntryPayload::Normal(EncodedBatch(bytes)) => {
            Ok(machine::wall_after(before, command_codec::decode_batch(bytes)?.wall))
        }
        EntryPayload::Blank | EntryPayload::Membership(_) => Ok(before),
    }
}

fn apply_entry<V: View>(
    reached: &mut Reached<'_>,
    applier: &mut Applier<'_, V>,
    entry: &LogEntry,
) -> Result<Result<BatchReply, StateFault>, Fault> {
    let log_id = LogIdRecord::from(&entry.log_id);
    if reached.log_id.is_some_and(|last| log_id.index <= last.index) {
        return Ok(Err(StateFault::new(format!("the state is at {:?} already", reached.log_id))));
    }
    let mut costs = Vec::new();
    let replies = match &entry.payload {
        EntryPayload::Blank => Vec::new(),
        EntryPayload::Membership(membership) => {
            let membership = MembershipRecord::from(membership);
            applier.apply_membership(log_id.index, &reached.disks(), &disks_of(&membership))?;
            reached.membership = Some(StoredMembershipRecord { log_id: Some(log_id), membership });
            Vec::new()
        }
        EntryPayload::Normal(EncodedBatch(bytes)) => {
            // openraft's own conformance suite leaves gaps, but only between entries without commands.
            let expected = reached.log_id.map_or(0, |last| last.index + 1);
            if log_id.index != expected {
                return Ok(Err(StateFault::new(format!("entries are missing before it: {expected} is the next"))));
            }
            match command_codec::decode_batch(bytes) {
                Ok(batch) => {
                    let replies = applier.apply_batch(log_id.index, &batch)?;
                    costs = applier.take_costs();
                    replies
                }
                Err(error) => return Ok(Err(StateFault::because("the batch cannot be decoded", error))),
            }
        }
    };
    reached.log_id = Some(log_id);
    Ok(Ok(BatchReply { replies, costs }))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use quorate_machine::document::Criteria;
    use quorate_machine::types::{Action, Batch, Change, Command, ContentKind, Expect, Expiry, Key, Value, WriteOp};

    use super::*;
    use crate::adapters::state_machine::StateMachine;
    use crate::state::StateOptions;

    fn entry(index: u64, change: Change) -> LogEntry {
        let key = Key::new("document").unwrap();
        let (expect, condition, expiry) = (Expect::ANY, Criteria::default(), Expiry::Keep);
        let op = WriteOp { key, expect, condition, change, expiry, return_previous: false, session: None, guard: None };
        let command = Command::unnamed(Action::Write(op));
        let batch =
            Batch { clock: index, wall: index, seed: [7; 16], commands: vec![command_codec::encode_command(&command)] };
        let payload = EntryPayload::Normal(EncodedBatch(command_codec::encode_batch(&batch)));
        LogEntry { log_id: LogIdRecord { term: 1, node: 1, index }.into(), payload }
    }

    #[test]
    fn a_group_ends_once_its_effect_is_large() {
        let dir = tempfile::tempdir().unwrap();
        let (_state, reader) = StateMachine::open(dir.path(), StateOptions::new(1)).unwrap();
        let mut committer = Committer::new(Arc::clone(&reader.shared));
        let value = Value { kind: ContentKind::Bytes, data: vec![7; 1 << 17] };
        let blank =
            LogEntry { log_id: LogIdRecord { term: 1, node: 1, index: 0 }.into(), payload: EntryPayload::Blank };
        // Each entry but the first two is a few bytes that read, keep and write the value again.
        let mut entries = vec![blank, entry(1, Change::Put(value))];
        entries.extend((2..7).map(|index| entry(index, Change::Touch)));
        let first = committer.apply(&entries).unwrap();
        assert_eq!(first.len(), 5, "0 + 1 + 3 * 3 eighths are the first sum above 8");
        assert_eq!(reader.position().index, 4);
        let second = committer.apply(&entries[first.len()..]).unwrap();
        assert_eq!((second.len(), reader.position().index), (2, 6));
    }

    #[test]
    fn what_is_answered_and_not_written_is_seen_by_nobody_and_waited_for_by_who_wants_to_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let (_state, reader) = StateMachine::open(dir.path(), StateOptions::new(1)).unwrap();
        let mut committer = Committer::new(Arc::clone(&reader.shared));
        let blank =
            LogEntry { log_id: LogIdRecord { term: 1, node: 1, index: 0 }.into(), payload: EntryPayload::Blank };
        committer.apply(&[blank]).unwrap();
        assert!(reader.wait_answered().now_or_never().is_some(), "all that was answered is there");

        let value = Value { kind: ContentKind::Bytes, data: vec![7] };
        let entry_1 = entry(1, Change::Put(value));
        let before = reader.position();
        let (answers, decided) = committer.decide([&entry_1]).unwrap();
        assert!(reader.wait_answered().now_or_never().is_some(), "it is not answered yet");
        committer.before_answers();
        let told = answers[0].replies[0].revision;
        assert_eq!((told, committer.index()), (before.revision + 1, 1));
        assert_eq!(reader.position(), before, "nothing is written");
        let mut shown = std::pin::pin!(reader.wait_answered());
        assert!(shown.as_mut().now_or_never().is_none(), "it was answered, and a read would not show it");
        committer.write(decided).unwrap();
        assert!(shown.now_or_never().is_some());
        assert_eq!((reader.position().index, reader.position().revision), (1, told));
    }

    #[test]
    fn nothing_is_decided_on_top_of_what_was_decided_and_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let (_state, reader) = StateMachine::open(dir.path(), StateOptions::new(1)).unwrap();
        let mut committer = Committer::new(Arc::clone(&reader.shared));
        let blank =
            |index| LogEntry { log_id: LogIdRecord { term: 1, node: 1, index }.into(), payload: EntryPayload::Blank };
        let (answers, lost) = committer.decide(&[blank(0)]).unwrap();
        assert_eq!(answers.len(), 1);
        drop(lost);
        assert!(committer.decide(&[blank(1)]).is_err());
        // What was lost is still in the log.
        assert_eq!(committer.reload().unwrap().log_id, None);
        assert_eq!(committer.apply(&[blank(0)]).unwrap().len(), 1);
    }
}
