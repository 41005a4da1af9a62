//! What the entries hold: it follows from the seed and from their id, so that whoever finds one can tell whether it is right.
//!
//! Owns the workload of the state. Never decides which entries there are.

use std::collections::{BTreeMap, BTreeSet};

use openraft::EntryPayload;
use quorate_machine::command_codec;
use quorate_machine::document::Criteria;
use quorate_machine::types::{
    Action, Batch, Change, Command, ContentKind, Expect, Expiry, Key, Maintenance, RequestId, Value, WriteOp,
};
use quorate_store::raft::wire::{LogIdRecord, MemberRecord, MembershipRecord};
use quorate_store::raft::{EncodedBatch, LogEntry, LogId, Membership};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The node whose storage this is.
pub const NODE: u64 = 1;

/// Keys that the entries are about.
const KEYS: u64 = 150;

/// The id of an entry.
pub fn log_id(term: u64, index: u64) -> LogId {
    LogIdRecord { term, node: NODE, index }.into()
}

/// The entry with this id.
pub fn entry(seed: u64, term: u64, index: u64) -> LogEntry {
    let mut dice = StdRng::seed_from_u64(seed ^ term.rotate_left(40) ^ index);
    let payload = match dice.random_range(0..40) {
        // As in every cluster the very first entry is no batch.
        _ if index == 0 => EntryPayload::Membership(membership(&mut dice)),
        0 => EntryPayload::Blank,
        1 => EntryPayload::Membership(membership(&mut dice)),
        _ => EntryPayload::Normal(batch(&mut dice, term, index)),
    };
    LogEntry { log_id: log_id(term, index), payload }
}

fn membership(dice: &mut StdRng) -> Membership {
    let members: BTreeSet<u64> = (1..=dice.random_range(1..6)).collect();
    let record = |id: &u64| MemberRecord {
        peer_addr: format!("node-{id}:1"),
        client_addr: format!("node-{id}:2"),
        incarnation: incarnation(*id),
    };
    let nodes: BTreeMap<u64, MemberRecord> = members.iter().map(|id| (*id, record(id))).collect();
    MembershipRecord { configs: vec![members], nodes }.try_into().expect("every voter is a node")
}

/// The data directory of a node.
pub fn incarnation(id: u64) -> u128 {
    u128::from(id) << 64 | 7
}

fn batch(dice: &mut StdRng, term: u64, index: u64) -> EncodedBatch {
    let mut commands: Vec<Command> = (0..dice.random_range(1..6)).map(|n| command(dice, term, index, n)).collect();
    match dice.random_range(0..12) {
        0 => commands.push(Command::unnamed(Action::Maintain(Maintenance::ExpireDue { limit: 50 }))),
        1 => {
            commands.push(Command::unnamed(Action::Maintain(Maintenance::Compact { revision: index, groups_max: 20 })));
        }
        _ => {}
    }
    let (clock, commands) = (index * 700, commands.iter().map(command_codec::encode_command).collect());
    EncodedBatch(command_codec::encode_batch(&Batch { clock, wall: 1_000 + clock, seed: [7; 16], commands }))
}

fn command(dice: &mut StdRng, term: u64, index: u64, n: u64) -> Command {
    let key = Key::new(format!("key/{}", dice.random_range(0..KEYS))).expect("a good key");
    // Most entries are small; one in a hundred takes a segment of its own.
    let bytes = if dice.random_ratio(1, 200) { dice.random_range(40_000..90_000) } else { dice.random_range(0..900) };
    let mut data = format!("{term}.{index}.{n} ").into_bytes();
    data.resize(data.len() + bytes, b'x');
    let upsert = Change::Put(Value { kind: ContentKind::Bytes, data });
    let (change, expiry) = match dice.random_range(0..10) {
        0 => (Change::Remove, Expiry::Never),
        1 => (upsert, Expiry::After(dice.random_range(1..100_000))),
        _ => (upsert, Expiry::Never),
    };
    let (expect, condition) = (Expect::ANY, Criteria::default());
    let op = WriteOp { key, expect, condition, change, expiry, return_previous: false, session: None, guard: None };
    let request_id = dice.random_ratio(1, 3).then(|| RequestId(format!("id-{term}-{index}-{n}")));
    Command { request_id, ..Command::unnamed(Action::Write(op)) }
}
