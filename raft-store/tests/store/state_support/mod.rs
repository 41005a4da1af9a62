//! What the tests of the state store share: opening, entries, a seeded workload, snapshots.

pub mod snapshots;

use std::path::Path;
use std::time::Duration;

use futures::stream;
use openraft::storage::RaftStateMachine;
use quorate_machine::command_codec;
use quorate_machine::query::{ListPage, ListQuery, ListRead};
use quorate_machine::types::{
    Action, Batch, Change, Command, ContentKind, Expiry, Key, Maintenance, RequestId, Value, WriteOp,
};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::raft::wire::LogIdRecord;
use quorate_store::raft::{EncodedBatch, LogEntry};
use quorate_store::state::{StateOptions, StateReader};

pub const LONG: Duration = Duration::from_secs(20);

pub fn options() -> StateOptions {
    StateOptions { snapshot_entries_min: 0, snapshot_free_bytes_min: 0, ..StateOptions::new(1) }
}

/// Opens; the database of a store dropped just before may still be closing on another thread.
pub fn open(dir: &Path) -> (StateMachine, StateReader) {
    StateMachine::open(dir, options()).expect("the state opens")
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub fn key(name: impl AsRef<[u8]>) -> Key {
    Key::new(name.as_ref()).unwrap()
}

pub fn value(data: impl Into<Vec<u8>>) -> Value {
    Value { kind: ContentKind::Bytes, data: data.into() }
}

pub fn write(key: Key, change: Change) -> Command {
    let op = WriteOp { change, expiry: Expiry::Never, ..WriteOp::removal(key, false) };
    Command::unnamed(Action::Write(op))
}

pub fn put(name: impl AsRef<[u8]>, data: impl Into<Vec<u8>>) -> Command {
    write(key(name), Change::Put(value(data)))
}

pub fn remove(name: impl AsRef<[u8]>) -> Command {
    write(key(name), Change::Remove)
}

pub fn with_ttl(mut command: Command, ms: u64) -> Command {
    if let Action::Write(op) = &mut command.action {
        op.expiry = Expiry::After(ms);
    }
    command
}

pub fn with_id(command: Command, id: &str) -> Command {
    Command { request_id: Some(RequestId(id.into())), ..command }
}

pub fn maintain(what: Maintenance) -> Command {
    Command::unnamed(Action::Maintain(what))
}

fn log_id(index: u64) -> quorate_store::raft::LogId {
    LogIdRecord { term: 1, node: 1, index }.into()
}

pub fn blank(index: u64) -> LogEntry {
    LogEntry { log_id: log_id(index), payload: openraft::EntryPayload::Blank }
}

pub fn batch(index: u64, clock: u64, commands: &[Command]) -> LogEntry {
    let commands = commands.iter().map(command_codec::encode_command).collect();
    let batch = command_codec::encode_batch(&Batch { clock, wall: 1_000 + clock, seed: [7; 16], commands });
    LogEntry { log_id: log_id(index), payload: openraft::EntryPayload::Normal(EncodedBatch(batch)) }
}

pub async fn apply(state: &mut StateMachine, entries: Vec<LogEntry>) {
    try_apply(state, entries).await.expect("the entries apply");
}

pub async fn try_apply(state: &mut StateMachine, entries: Vec<LogEntry>) -> std::io::Result<()> {
    state.apply(stream::iter(entries.into_iter().map(|entry| Ok((entry, None))))).await
}

pub fn query(start: impl AsRef<[u8]>, end: Option<&[u8]>) -> ListQuery {
    ListQuery {
        start: start.as_ref().to_vec(),
        end: end.map(<[u8]>::to_vec),
        revision: None,
        limit: usize::MAX,
        bytes_max: usize::MAX,
        keys_only: false,
        reverse: false,
    }
}

pub fn page(read: ListRead) -> ListPage {
    match read {
        ListRead::Page(page) => page,
        other => panic!("no page: {other:?}"),
    }
}

/// A small generator, so that a failing run is repeated by its seed.
pub struct Rng(pub u64);

impl Rng {
    #[expect(clippy::disallowed_methods, reason = "a fresh seed for each run, printed")]
    pub fn seeded(name: &str) -> Self {
        let seed = match std::env::var("QUORATE_SEED") {
            Ok(seed) => seed.parse().expect("QUORATE_SEED is a number"),
            Err(_) => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64,
        };
        println!("{name}: QUORATE_SEED={seed}");
        Self(seed | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % bound
    }
}

/// Entry `index` of a workload that is the same in every process: puts, removes, TTLs, request ids, housekeeping.
pub fn workload_entry(index: u64) -> LogEntry {
    if index == 0 {
        return blank(0);
    }
    let mut rng = Rng(index.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let clock = index * 700;
    let mut commands: Vec<Command> = (0..1 + rng.below(6))
        .map(|n| {
            let name = format!("key/{}", rng.below(200));
            match rng.below(10) {
                0 => remove(name),
                1 => with_ttl(put(name, format!("ttl {index}.{n}")), 1 + rng.below(100_000)),
                2..6 => with_id(put(name, vec![b'x'; 64]), &format!("id-{index}-{n}")),
                _ => put(name, format!("value {index}.{n}")),
            }
        })
        .collect();
    match rng.below(12) {
        0 => commands.push(maintain(Maintenance::ExpireDue { limit: 50 })),
        1 => commands.push(maintain(Maintenance::Compact { revision: index, groups_max: 20 })),
        _ => {}
    }
    batch(index, clock, &commands)
}
