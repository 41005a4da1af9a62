//! The storage of one node, opened in the order in which a node opens it.
//!
//! Owns that order and the settings under test. Never judges what it finds.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use openraft::storage::{RaftLogReader, RaftLogStorage, RaftStateMachine};
use parking_lot::Mutex;
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::identity::{self, Identity};
use quorate_store::log::{LogOptions, LogStore};
use quorate_store::raft::LogEntry;
use quorate_store::state::{AppliedState, StateOptions, StateReader};

use super::entries::{NODE, incarnation};

/// The cluster that the node is adopted by.
pub const CLUSTER: u128 = 77;

/// Room for some dozen small groups: everything happens at the ends of segments.
const SEGMENT_BYTES: u64 = 128 * 1024;

/// Said of anything that went wrong.
pub type Fault = String;

/// Storage that is open.
pub struct Storage {
    /// Who it belongs to.
    pub identity: Identity,
    /// The log.
    pub log: LogStore,
    /// Index of the last entry that was purged when the log was opened. Whatever is purged later may come back after a crash.
    pub purged_before: Option<u64>,
    /// The state, for writing.
    pub machine: StateMachine,
    /// The state, for reading.
    pub reader: StateReader,
    /// What the log said when it failed.
    fatal: Arc<Mutex<Option<String>>>,
}

impl Storage {
    /// Opens what is in the directory, or makes it.
    pub fn open(dir: &Path) -> Result<Storage, Fault> {
        let identity = identity::open(dir, NODE, incarnation(NODE)).map_err(|error| error.to_string())?;
        let fatal = Arc::new(Mutex::new(None));
        let told = Arc::clone(&fatal);
        let hook = Arc::new(move |fault: &str| *told.lock() = Some(fault.to_owned()));
        let options = LogOptions { segment_bytes: SEGMENT_BYTES, ..LogOptions::default() };
        let log = LogStore::open_with(dir, &identity, &options, hook).map_err(|error| error.to_string())?;
        let purged_before = log.purged_index();
        let (machine, reader) = open_state(dir)?;
        Ok(Storage { identity, log, purged_before, machine, reader, fatal })
    }

    /// Whether the log has failed since.
    pub fn fault(&self) -> Option<Fault> {
        self.fatal.lock().clone()
    }

    /// Every entry of the log, in order.
    pub async fn entries(&mut self) -> Result<Vec<LogEntry>, Fault> {
        let mut reader = self.log.get_log_reader().await;
        reader.try_get_log_entries(..).await.map_err(|error| format!("the log cannot be read: {error}"))
    }

    /// Index of the last entry applied.
    pub fn applied(&self) -> Option<u64> {
        self.reader.applied().log_id.map(|id| id.index)
    }

    /// Closes everything. The directory is free afterwards.
    pub fn close(self) {
        let Storage { log, machine, reader, .. } = self;
        log.close();
        drop((machine, reader));
    }
}

/// Opens the state alone.
pub fn open_state(dir: &Path) -> Result<(StateMachine, StateReader), Fault> {
    let options = StateOptions {
        snapshot_entries_min: 0,
        snapshot_free_bytes_min: 0,
        durable_poll: Duration::from_millis(5),
        flush_every: Duration::from_millis(60),
        ..StateOptions::new(NODE)
    };
    StateMachine::open(dir, options).map_err(|error| error.to_string())
}

/// Applies entries.
pub async fn apply(machine: &mut StateMachine, entries: Vec<LogEntry>) -> Result<(), Fault> {
    let entries = futures::stream::iter(entries.into_iter().map(|entry| Ok((entry, None))));
    machine.apply(entries).await.map_err(|error| format!("the entries do not apply: {error}"))
}

/// All that can be told of a state, as a number.
pub fn print_of(applied: &AppliedState) -> u64 {
    let text = format!("{applied:?}");
    let (mut high, mut low) = (crc32fast::Hasher::new_with_initial(1), crc32fast::Hasher::new());
    high.update(text.as_bytes());
    low.update(&text.len().to_le_bytes());
    low.update(&applied.digest.to_le_bytes());
    u64::from(high.finalize()) << 32 | u64::from(low.finalize())
}
