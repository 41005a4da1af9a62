//! W1: registers that many clients read, write, exchange by token, lock and remove.
//!
//! Owns one client of that. Values are unique, so that each read shows whose write it saw. Keys are given up after a while, so
//! that the history of each stays small enough for a search.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::rngs::StdRng;

use super::{Next, Script, Workload};
use crate::operation::{Change, Operation, Write};
use crate::record::{Micros, Record, Seen};
use crate::timeline::entries_of;

/// The registers of one time.
const SLOTS: u64 = 6;
/// How long a set of registers is used.
const GENERATION: Micros = 1_500_000;

/// How long an entry is locked: longer than it is used, so that no lock in use ends by itself.
const LOCK_MS: u64 = 30_000;
/// How long a client waits for a lock.
const WAIT_MS: u64 = 400;

/// Registers below a prefix.
#[derive(Debug, Clone, Copy)]
pub struct Registers {
    /// The name of the workload.
    pub name: &'static str,
}

impl Workload for Registers {
    fn name(&self) -> &'static str {
        self.name
    }

    fn script(&self, number: usize, _of: usize) -> Box<dyn Script> {
        Box::new(Client {
            prefix: self.name,
            number,
            written: 0,
            newest: 1,
            tokens: BTreeMap::new(),
            held: BTreeMap::new(),
        })
    }
}

struct Client {
    prefix: &'static str,
    number: usize,
    written: u64,
    /// The newest revision that it knows.
    newest: u64,
    /// The tokens that it has seen last.
    tokens: BTreeMap<String, u64>,
    /// The keys to locks that it has on entries.
    held: BTreeMap<String, u64>,
}

impl Client {
    fn value(&mut self) -> serde_json::Value {
        self.written += 1;
        format!("{}.{}.{}", self.prefix, self.number, self.written).into()
    }

    /// A register of this time. Those below `many` are for everything, the others for single operations only.
    fn key(&self, now: Micros, below: &str, dice: &mut StdRng) -> String {
        self.register(now, below, dice.random_range(0..SLOTS))
    }

    fn register(&self, now: Micros, below: &str, slot: u64) -> String {
        let generation = now / GENERATION;
        format!("{}/{below}/{generation:03}.{slot}", self.prefix)
    }

    fn single(&mut self, key: String, dice: &mut StdRng) -> Operation {
        let value = self.value();
        match dice.random_range(0..100) {
            0..28 => Operation::Get { key },
            28..32 => Operation::Local { key, min_revision: None },
            32..40 => Operation::Local { key, min_revision: Some(self.newest) },
            40..55 => Operation::Write(Write::put(key, value)),
            55..62 => Operation::Write(Write::insert(key, value)),
            62..66 => Operation::Write(Write::new(key, Change::Replace(value))),
            66..72 => Operation::Write(Write::remove(key)),
            roll => match self.tokens.get(&key) {
                None => Operation::Get { key },
                Some(token) if roll < 76 => Operation::Write(Write::remove(key).cas(*token)),
                Some(token) => Operation::Write(Write::put(key, value).cas(*token)),
            },
        }
    }
}

impl Client {
    /// Something about entries that are locked now and then. All who wait for a lock wait for the same one, and queue up there.
    fn locking(&mut self, now: Micros, dice: &mut StdRng) -> Operation {
        let key = self.key(now, "held", dice);
        let held = self.held.first_key_value().map(|(key, token)| (key.clone(), *token));
        match (dice.random_range(0..8), held) {
            (0 | 1, Some((key, token))) => Operation::Write(Write::new(key, Change::Unlock).cas(token)),
            (2..5, Some((key, token))) => {
                let value = self.value();
                Operation::Write(Write::put(key, value).cas(token))
            }
            (0 | 1, None) => {
                let key = self.register(now, "held", 0);
                Operation::Write(Write::new(key, Change::Lock(LOCK_MS)).wait_ms(WAIT_MS))
            }
            (0..4, _) => Operation::Write(Write::new(key, Change::Lock(LOCK_MS))),
            (4, _) => Operation::Get { key },
            _ => self.single(key, dice),
        }
    }

    /// What it knows of its locks from what it was told.
    fn learn_lock(&mut self, write: &Write, cas: Option<u64>) {
        match (&write.change, cas) {
            (Change::Lock(_), Some(token)) => self.held.insert(write.key.clone(), token),
            _ => self.held.remove(&write.key),
        };
    }
}

impl Script for Client {
    fn next(&mut self, now: Micros, dice: &mut StdRng) -> Next {
        let operation = match dice.random_range(0..22) {
            0..14 => {
                let key = self.key(now, "one", dice);
                self.single(key, dice)
            }
            14..16 => {
                let key = self.key(now, "many", dice);
                self.single(key, dice)
            }
            16..18 => {
                let mut writes = Vec::new();
                for _ in 0..dice.random_range(2..6) {
                    let key = self.key(now, "many", dice);
                    let change = Change::Put(self.value());
                    writes.push(match dice.random_range(0..5) {
                        0 => Write::remove(key),
                        1 => Write { change: Change::Insert(self.value()), ..Write::remove(key) },
                        _ => Write::new(key, change),
                    });
                }
                Operation::Bulk { writes }
            }
            18..20 => self.locking(now, dice),
            _ => Operation::List { prefix: format!("{}/{}/{:03}.", self.prefix, "many", now / GENERATION) },
        };
        Next::Do(operation)
    }

    fn learn(&mut self, record: &Record) {
        self.newest = self.newest.max(record.decided().map_or(0, |decided| decided.revision));
        for entry in entries_of(record) {
            if let Some(cas) = entry.cas {
                self.tokens.insert(entry.key.clone(), cas);
            }
        }
        let (Operation::Write(write), Some(decided)) = (&record.operation, record.decided()) else { return };
        if let Seen::Written(written) = &decided.seen {
            self.learn_lock(write, written.cas);
            match written.cas {
                Some(cas) => self.tokens.insert(write.key.clone(), cas),
                None => self.tokens.remove(&write.key),
            };
        } else if write.cas.is_some() {
            // Somebody else has it, or nobody any more.
            self.held.remove(&write.key);
        }
    }
}
