//! W2: a set that clients add to and list, for good.
//!
//! Owns one client of that. Each element is a key of its own; from time to time a new set is begun, or lists would grow too long.

use rand::RngExt;
use rand::rngs::StdRng;

use super::{Next, Script, Workload};
use crate::operation::{Operation, Write};
use crate::record::{Micros, Record};

/// Elements that one client adds to a set.
const EACH: u64 = 20;

/// Sets.
#[derive(Debug, Clone, Copy)]
pub struct Set;

impl Workload for Set {
    fn name(&self) -> &'static str {
        "set"
    }

    fn script(&self, number: usize, _of: usize) -> Box<dyn Script> {
        Box::new(Client { number, added: 0 })
    }
}

struct Client {
    number: usize,
    added: u64,
}

impl Script for Client {
    fn next(&mut self, _now: Micros, dice: &mut StdRng) -> Next {
        let set = self.added / EACH;
        if dice.random_range(0..4) == 0 {
            return Next::Do(Operation::List { prefix: format!("set/{set:03}/") });
        }
        self.added += 1;
        let (number, added) = (self.number, self.added);
        Next::Do(Operation::Write(Write::insert(format!("set/{set:03}/{number}.{added}"), format!("{number}.{added}"))))
    }

    fn learn(&mut self, _record: &Record) {}
}
