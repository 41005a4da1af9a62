//! Failures and delays of a node in memory, as a test orders them.
//!
//! Owns these orders. Never touches the state.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::thread::{self, ThreadId};
use std::time::Duration;

use quorate_machine::types::{Action, Command, Key, Outcome, Rejection};
use quorate_node_core::backend::AppError;
use quorate_threads::watchdog;

use super::{Inner, MemoryNode};

/// The orders of a test.
#[derive(Default)]
pub struct Faults {
    /// Keys whose writes wait.
    held: Vec<Key>,
    /// Writes fail for this, from the command of this number on.
    writes: Option<(usize, AppError)>,
    /// Reads fail for this.
    reads: Option<AppError>,
    /// Writes are refused for this.
    rejection: Option<Rejection>,
    /// Outcomes of the next commands.
    outcomes: VecDeque<Outcome>,
    /// The answer to the next query, by the name of the query.
    answers: BTreeMap<&'static str, Box<dyn Any + Send>>,
    /// A command that this node has not applied yet.
    news: Option<Action>,
    unready: Option<String>,
    /// Whether all that is written takes much work, and is known to.
    is_dear: bool,
    /// Whether nobody can say how far this node is behind.
    lacks_leader: bool,
    /// Whether readers do not see yet what was decided.
    is_behind: bool,
    /// Since when the leader was not heard.
    silence_ms: Option<u64>,
    /// Whether listings and counts come and do not end.
    holds_scans: bool,
    /// Listings and counts that came.
    scans: usize,
    /// The time of a processor that each of them takes on top.
    scans_take: Duration,
    /// On which thread each read of entries was done.
    readers: Vec<ThreadId>,
    /// How many pages of changes may be read before the disk hangs.
    pages_left: Option<usize>,
    backup_pieces: usize,
}

impl Faults {
    /// The ordered outcome of the last of `asked` commands, if there is one.
    pub fn end_of_write(&mut self, asked: usize) -> Option<Result<Outcome, AppError>> {
        if let Some((from, error)) = &self.writes
            && asked > *from
        {
            return Some(Err(error.clone()));
        }
        if let Some(rejection) = &self.rejection {
            return Some(Ok(Outcome::Rejected(rejection.clone())));
        }
        self.outcomes.pop_front().map(Ok)
    }

    /// Whether a test ordered that every command be refused.
    pub fn refuses_all(&self) -> bool {
        self.rejection.is_some()
    }

    /// The ordered failure of a read.
    pub fn end_of_read(&self) -> Result<(), AppError> {
        self.reads.clone().map_or(Ok(()), Err)
    }

    /// The command that this node applies once it asks how far it is behind.
    pub fn take_news(&mut self) -> Option<Action> {
        self.news.take()
    }

    pub fn unready_reason(&self) -> Option<String> {
        self.unready.clone()
    }

    /// Whether one more page of changes may be read.
    fn has_page(&mut self) -> bool {
        let Some(left) = &mut self.pages_left else { return true };
        let may = *left > 0;
        *left = left.saturating_sub(1);
        may
    }

    pub fn is_dear(&self) -> bool {
        self.is_dear
    }

    pub fn lacks_leader(&self) -> bool {
        self.lacks_leader
    }

    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    pub fn silence_ms(&self) -> u64 {
        self.silence_ms.unwrap_or(15)
    }

    pub fn backup_pieces(&self) -> usize {
        self.backup_pieces
    }
}

impl MemoryNode {
    /// Lets writes of this key, bulks that begin with one, and claims and changes of all that matches under it as a prefix, come and not end.
    pub fn hold(&self, key: &str) {
        let key = Key::new(key).expect("a key");
        self.with(|node| node.faults.held.push(key));
    }

    /// Lets them end.
    pub fn release(&self, key: &str) {
        self.with(|node| node.faults.held.retain(|held| held.as_bytes() != key.as_bytes()));
        self.changed.notify_waiters();
    }

    /// Waits until the command may go on.
    pub(super) async fn pass(&self, command: &Command) {
        let name: &[u8] = match &command.action {
            Action::Write(op) => op.key.as_bytes(),
            Action::Bulk(ops) => ops.first().map_or(b"".as_slice(), |op| op.key.as_bytes()),
            Action::Where(op) => &op.prefix,
            Action::Claim(op) => &op.prefix,
            _ => return,
        };
        let is_free = |node: &mut Inner| !node.faults.held.iter().any(|held| held.as_bytes() == name);
        self.when(|| self.with(is_free).then_some(())).await;
    }

    /// From now on writes fail.
    pub fn fail_writes(&self, error: AppError) {
        self.fail_writes_from(0, Some(error));
    }

    /// Fails writes from the command of this number on; `None`: not any more.
    pub fn fail_writes_from(&self, command: usize, error: Option<AppError>) {
        self.with(|node| node.faults.writes = error.map(|error| (command, error)));
    }

    /// From now on reads fail; `None`: not any more.
    pub fn fail_reads(&self, error: Option<AppError>) {
        self.with(|node| node.faults.reads = error);
    }

    /// From now on every command is refused for this.
    pub fn reject_writes(&self, rejection: Rejection) {
        self.with(|node| node.faults.rejection = Some(rejection));
    }

    /// Orders the outcome of the next command, for outcomes that hardly any state leads to.
    pub fn come_to(&self, outcome: Outcome) {
        self.with(|node| node.faults.outcomes.push_back(outcome));
    }

    /// Orders the answer to the next query of this name, for answers that hardly any state leads to.
    pub fn answer_next(&self, name: &'static str, answer: impl Any + Send) {
        self.with(|node| drop(node.faults.answers.insert(name, Box::new(answer))));
    }

    /// The answer that a test gave for a query, once.
    pub(super) fn scripted<T: 'static>(&self, name: &str) -> Option<T> {
        let answer = self.with(|node| node.faults.answers.remove(name))?;
        Some(*answer.downcast::<T>().unwrap_or_else(|_| panic!("{name} is answered with something else")))
    }

    /// Lets the node be behind by this, until it asks how far it is.
    pub fn hear_of(&self, news: Action) {
        self.with(|node| node.faults.news = Some(news));
    }

    pub fn be_unready(&self, reason: &str) {
        self.with(|node| node.faults.unready = Some(reason.to_owned()));
    }

    /// From now on all that is written takes much work, and is known to.
    pub fn be_dear(&self) {
        self.with(|node| node.faults.is_dear = true);
    }

    /// From now on there is nobody to ask how far this node is behind.
    pub fn lose_leader(&self) {
        self.with(|node| node.faults.lacks_leader = true);
    }

    /// From now on what was decided does not come to be applied here, as far as anybody waits for that.
    pub fn fall_behind(&self) {
        self.with(|node| node.faults.is_behind = true);
    }

    /// Milliseconds since the leader was heard.
    pub fn hear_nothing_for(&self, ms: u64) {
        self.with(|node| node.faults.silence_ms = Some(ms));
    }

    /// Lets listings and counts come and not end, or end.
    pub fn hold_scans(&self, held: bool) {
        self.with(|node| node.faults.holds_scans = held);
    }

    /// Listings and counts that came.
    pub fn scans(&self) -> usize {
        self.with(|node| node.faults.scans)
    }

    /// Adds `time` of a processor to each listing and each count from now on.
    pub fn have_scans_take(&self, time: Duration) {
        self.with(|node| node.faults.scans_take = time);
    }

    /// On which thread each read of entries was done, of one or of many.
    pub fn readers(&self) -> Vec<ThreadId> {
        self.with(|node| node.faults.readers.clone())
    }

    /// Lets the disk hang after `pages` pages of changes; `None` ends that.
    pub fn hang_after_pages(&self, pages: Option<usize>) {
        self.with(|node| node.faults.pages_left = pages);
    }

    /// Sets the number of pieces of 64 KiB in a backup.
    pub fn set_backup_pieces(&self, pieces: usize) {
        self.with(|node| node.faults.backup_pieces = pieces);
    }

    /// Notes a query of this name, and waits or works where it is to. The node is free meanwhile.
    pub(super) fn before_query(&self, name: &str) {
        let is_scan = matches!(name, "list" | "count");
        if is_scan || matches!(name, "get" | "get_at") {
            self.with(|node| {
                node.faults.readers.push(thread::current().id());
                node.faults.scans += usize::from(is_scan);
            });
        }
        while is_scan && self.with(|node| node.faults.holds_scans) {
            thread::sleep(Duration::from_millis(2));
        }
        if is_scan {
            let end = watchdog::processor_time() + self.with(|node| node.faults.scans_take);
            while watchdog::processor_time() < end {}
        }
        while name == "changes" && !self.with(|node| node.faults.has_page()) {
            thread::sleep(Duration::from_millis(5));
        }
    }
}
