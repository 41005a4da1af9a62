//! W6: entries that live for a while, looked at again and again until they are gone and beyond.
//!
//! Owns one client of that. Each entry is written once.

use rand::RngExt;
use rand::rngs::StdRng;

use super::{Next, Script, Workload};
use crate::operation::{Operation, Write};
use crate::record::{Micros, Record};

/// Entries that live for a while.
#[derive(Debug, Clone, Copy)]
pub struct Fleeting;

impl Workload for Fleeting {
    fn name(&self) -> &'static str {
        "fleeting"
    }

    fn script(&self, number: usize, _of: usize) -> Box<dyn Script> {
        Box::new(Client { number, written: 0, given_up: 0 })
    }

    fn last_reads(&self) -> Vec<Operation> {
        Vec::new()
    }
}

struct Client {
    number: usize,
    written: u64,
    /// When the entry is looked at no more.
    given_up: Micros,
}

impl Script for Client {
    fn next(&mut self, now: Micros, dice: &mut StdRng) -> Next {
        if now >= self.given_up {
            self.written += 1;
            let ttl_ms = dice.random_range(300..1_500);
            self.given_up = now + (ttl_ms + 2_500) * 1_000;
            let value = format!("{}.{}", self.number, self.written);
            return Next::Do(Operation::Write(Write::put(self.key(), value).ttl_ms(ttl_ms)));
        }
        match dice.random_range(0..3) {
            0 => Next::Do(Operation::Get { key: self.key() }),
            _ => Next::Pause(dice.random_range(10_000..60_000)),
        }
    }

    fn learn(&mut self, _record: &Record) {}
}

impl Client {
    fn key(&self) -> String {
        format!("fleeting/{}.{}", self.number, self.written)
    }
}
