//! Real values to begin with: requests of every kind, the commands they become, and the rows and replies those come to.
//!
//! Owns none of them: all follow from [`super::requests`] by the code of the product itself.

use std::sync::OnceLock;

use bytes::BytesMut;
use openraft::EntryPayload;
use quorate_crossing::store::Store;
use quorate_machine::command_codec;
use quorate_machine::machine::Vars;
use quorate_machine::types::{Batch, Command, Reply};
use quorate_store::raft::wire::{self, LogIdRecord};
use quorate_store::raft::{EncodedBatch, LogEntry};

use super::{http, requests};

/// The wall clock of all that is made here, Unix milliseconds.
pub const WALL: u64 = 1_700_000_000_000;

/// What the requests come to on a store in memory.
#[derive(Debug, Clone)]
pub struct Life {
    /// The commands that the requests became.
    pub commands: Vec<Command>,
    /// What each came to.
    pub replies: Vec<Reply>,
    /// The rows that are left, in order.
    pub rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// The scalars.
    pub vars: Vars,
}

/// Made once.
pub fn life() -> Life {
    static LIFE: OnceLock<Life> = OnceLock::new();
    LIFE.get_or_init(live).clone()
}

fn live() -> Life {
    let commands = http::commands_of(&requests::all());
    let (mut store, mut replies) = (Store::default(), Vec::new());
    for command in &commands {
        let done = store.apply(&[batch(std::slice::from_ref(command))]);
        let (done, _changed) = done.expect("what a node would propose can be applied");
        replies.extend(done.into_iter().flatten());
    }
    let Store { view, vars, .. } = store;
    Life { commands, replies, rows: view.0.into_iter().collect(), vars }
}

/// A batch of these.
pub fn batch(commands: &[Command]) -> Batch {
    Batch {
        clock: 1_000,
        wall: WALL,
        seed: [7; 16],
        commands: commands.iter().map(command_codec::encode_command).collect(),
    }
}

/// A log entry with a batch of these.
pub fn entry(index: u64, commands: &[Command]) -> LogEntry {
    let payload = EntryPayload::Normal(EncodedBatch(command_codec::encode_batch(&batch(commands))));
    LogEntry { log_id: LogIdRecord { term: 3, node: 1, index }.into(), payload }
}

/// The same as bytes.
pub fn entry_bytes(commands: &[Command]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    wire::encode_entry(&entry(7, commands), &mut bytes);
    bytes.to_vec()
}

/// At most so many of them, from all over.
pub fn spread<T>(all: &[T], count: usize) -> impl Iterator<Item = &T> {
    all.iter().step_by(all.len().div_ceil(count).max(1))
}
