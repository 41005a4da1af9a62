//! W1 with documents: counters that are patched where they are, taken from only while they have enough.
//!
//! Owns one client of that. Each patch notes by whom it is, so that each read shows whose was the last.

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::json;

use super::{Next, Script, Workload};
use crate::operation::{Change, Operation, Write};
use crate::record::{Micros, Record};

/// How many there are.
const COUNTERS: u64 = 4;

/// Counters.
#[derive(Debug, Clone, Copy)]
pub struct Counters;

impl Workload for Counters {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn script(&self, number: usize, _of: usize) -> Box<dyn Script> {
        Box::new(Client { number, written: 0 })
    }
}

struct Client {
    number: usize,
    written: u64,
}

impl Script for Client {
    fn next(&mut self, _now: Micros, dice: &mut StdRng) -> Next {
        let key = format!("counters/{}", dice.random_range(0..COUNTERS));
        self.written += 1;
        let by = format!("counters.{}.{}", self.number, self.written);
        let amount = dice.random_range(1..6);
        let adjust = |amount, at_least| Change::Adjust { amount, by: by.clone(), at_least };
        Next::Do(match dice.random_range(0..20) {
            0..4 => Operation::Get { key },
            4 => Operation::List { prefix: "counters/".into() },
            5 => Operation::Find { prefix: "counters/".into(), at_least: 5 },
            6..8 => Operation::Write(Write::insert(key, json!({"n": 3, "by": by}))),
            8 if amount == 1 => Operation::Write(Write::remove(key)),
            8..13 => Operation::Write(Write::new(key, adjust(amount, None))),
            _ => Operation::Write(Write::new(key, adjust(-amount, Some(amount)))),
        })
    }

    fn learn(&mut self, _record: &Record) {}
}
