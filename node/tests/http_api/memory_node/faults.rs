//! Where a node in memory fails or waits on purpose, whatever its state is.
//!
//! Owns what a test says of that. Never touches the state.

use std::collections::VecDeque;

use quorate_machine::types::{Action, Command, Key, Outcome, Rejection};
use quorate_node_core::app::AppError;

use super::MemoryNode;

/// What a test said.
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
    /// What the next commands come to.
    outcomes: VecDeque<Outcome>,
    unready: Option<String>,
}

impl Faults {
    /// What the last of so many commands comes to, where a test said it.
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

    /// What a read comes to before it is evaluated.
    pub fn end_of_read(&self) -> Result<(), AppError> {
        self.reads.clone().map_or(Ok(()), Err)
    }

    pub fn unready_reason(&self) -> Option<String> {
        self.unready.clone()
    }
}

impl MemoryNode {
    /// Lets writes of this key come and not end.
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
        let Action::Write(op) = &command.action else { return };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self.with(|node| node.faults.held.contains(&op.key)) {
                return;
            }
            changed.await;
        }
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

    /// What the next command comes to that nobody decided yet: for an end that hardly any state leads to.
    pub fn come_to(&self, outcome: Outcome) {
        self.with(|node| node.faults.outcomes.push_back(outcome));
    }

    pub fn be_unready(&self, reason: &str) {
        self.with(|node| node.faults.unready = Some(reason.to_owned()));
    }
}
