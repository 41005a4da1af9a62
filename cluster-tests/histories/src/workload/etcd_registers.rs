//! W1 as clients of etcd have it: registers that they read, write, exchange by revision and remove.
//!
//! Owns one client of that. Values are documents that say by whom they are, so that clients of HTTP read them as well.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::{Next, Script, Workload};
use crate::operation::{Change, Check, Operation, Step, Txn, Write};
use crate::record::{Micros, Record, Seen};
use crate::timeline::entries_of;

/// The registers of one time.
const SLOTS: u64 = 6;
/// How long a set of registers is used.
const GENERATION: Micros = 1_500_000;

/// Registers of clients of etcd.
#[derive(Debug, Clone, Copy)]
pub struct EtcdRegisters;

impl Workload for EtcdRegisters {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn script(&self, number: usize, _of: usize) -> Box<dyn Script> {
        Box::new(Client { number, written: 0, revisions: BTreeMap::new() })
    }
}

struct Client {
    number: usize,
    written: u64,
    /// The revisions of registers that it has seen last.
    revisions: BTreeMap<String, u64>,
}

impl Client {
    fn value(&mut self) -> Value {
        self.written += 1;
        json!({"by": format!("{}.{}", self.number, self.written)})
    }

    /// One that is exchanged by revision, if it has been seen.
    fn exchange(&mut self, key: String, dice: &mut StdRng) -> Operation {
        let value = self.value();
        match self.revisions.get(&key) {
            None => Operation::Get { key },
            Some(revision) if dice.random_ratio(1, 4) => Operation::Write(Write::remove(key).cas(*revision)),
            Some(revision) => Operation::Write(Write::put(key, value).cas(*revision)),
        }
    }

    /// Two at once, if one of them is as it was.
    fn both(&mut self, key: String, other: String) -> Operation {
        let checks = vec![Check { cas: self.revisions.get(&key).copied(), key: key.clone() }];
        let then = [&key, &other].map(|key| Step::Write(Write::put(key.as_str(), self.value()))).to_vec();
        let otherwise = vec![Step::Get(key), Step::Get(other)];
        Operation::Txn(Txn { checks, then, otherwise })
    }
}

impl Script for Client {
    fn next(&mut self, now: Micros, dice: &mut StdRng) -> Next {
        let generation = now / GENERATION;
        let register = |below: &str, slot: u64| format!("etcd/{below}/{generation:03}.{slot}");
        let slot = dice.random_range(0..SLOTS);
        let key = register("one", slot);
        Next::Do(match dice.random_range(0..100) {
            0..25 => Operation::Get { key },
            25..30 => Operation::Local { key, min_revision: None },
            30..45 => Operation::Write(Write::put(key, self.value())),
            45..52 => Operation::Write(Write::insert(key, self.value())),
            52..58 => Operation::Write(Write::new(key, Change::Replace(self.value()))),
            58..64 => Operation::Write(Write::remove(key)),
            64..82 => self.exchange(key, dice),
            82..94 => self.both(register("many", slot), register("many", (slot + 1) % SLOTS)),
            _ => Operation::List { prefix: format!("etcd/many/{generation:03}.") },
        })
    }

    fn learn(&mut self, record: &Record) {
        for entry in entries_of(record) {
            self.revisions.insert(entry.key.clone(), entry.mod_revision);
        }
        let Some(decided) = record.decided() else { return };
        let is_done = match &decided.seen {
            Seen::Written(_) => true,
            Seen::Txn(seen) => seen.succeeded,
            _ => false,
        };
        for write in record.operation.writes().into_iter().filter(|_| is_done) {
            self.revisions.insert(write.key.clone(), decided.revision);
        }
    }
}
