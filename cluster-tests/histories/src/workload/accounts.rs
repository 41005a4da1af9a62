//! W3: accounts whose sum never changes, moved between by transactions, with reads of all of them.
//!
//! Owns one client of that. A transfer reads both accounts in one transaction and writes both in the next, if their tokens are
//! still what they were.

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::{Next, Script, Workload};
use crate::operation::{Check, Operation, Step, Txn, Write};
use crate::record::{Entry, Micros, Record, Seen, StepSeen};

/// How many there are.
const ACCOUNTS: usize = 10;
/// What each has at first.
pub const EACH: i64 = 100;

/// Accounts.
#[derive(Debug, Clone, Copy)]
pub struct Accounts;

impl Workload for Accounts {
    fn name(&self) -> &'static str {
        "accounts"
    }

    fn script(&self, number: usize, _of: usize) -> Box<dyn Script> {
        Box::new(Client { number, written: 0, then: None })
    }
}

/// The sum of accounts that a list showed, if all of them are there.
pub fn sum(entries: &[Entry]) -> Option<i64> {
    (entries.len() == ACCOUNTS).then(|| entries.iter().filter_map(|entry| entry.value["n"].as_i64()).sum())
}

struct Client {
    number: usize,
    written: u64,
    /// What follows from what was read.
    then: Option<Operation>,
}

impl Client {
    fn value(&mut self, n: i64) -> Value {
        self.written += 1;
        json!({"n": n, "by": format!("{}.{}", self.number, self.written)})
    }

    /// The transaction that makes all accounts, where there are none.
    fn open(&mut self) -> Operation {
        let checks = (0..ACCOUNTS).map(|account| Check { key: key(account), cas: None }).collect();
        let then = (0..ACCOUNTS).map(|account| Step::Write(Write::insert(key(account), self.value(EACH)))).collect();
        Operation::Txn(Txn { checks, then, otherwise: Vec::new() })
    }

    /// The transaction that moves something from one to the other.
    fn transfer(&mut self, from: &Entry, to: &Entry) -> Option<Operation> {
        let amount = 1 + i64::try_from(self.written % 7).ok()?;
        let (left, right) = (from.value["n"].as_i64()?, to.value["n"].as_i64()?);
        let check = |entry: &Entry| Check { key: entry.key.clone(), cas: entry.cas };
        let checks = vec![check(from), check(to)];
        let mut put = |entry: &Entry, n| Step::Write(Write::put(&*entry.key, self.value(n)));
        let then = vec![put(from, left - amount), put(to, right + amount)];
        let otherwise = vec![Step::Get(from.key.clone())];
        Some(Operation::Txn(Txn { checks, then, otherwise }))
    }
}

fn key(account: usize) -> String {
    format!("accounts/{account}")
}

impl Script for Client {
    fn next(&mut self, _now: Micros, dice: &mut StdRng) -> Next {
        if let Some(operation) = self.then.take() {
            return Next::Do(operation);
        }
        let prefix = "accounts/".to_owned();
        Next::Do(match dice.random_range(0..10) {
            0..2 => Operation::List { prefix },
            2 => Operation::Find { prefix, at_least: EACH },
            _ if self.written == 0 => self.open(),
            _ => {
                let from = dice.random_range(0..ACCOUNTS);
                let to = (from + dice.random_range(1..ACCOUNTS)) % ACCOUNTS;
                let then = vec![Step::Get(key(from)), Step::Get(key(to))];
                Operation::Txn(Txn { then, ..Txn::default() })
            }
        })
    }

    fn learn(&mut self, record: &Record) {
        let Some(Seen::Txn(seen)) = record.decided().map(|decided| &decided.seen) else { return };
        if let [StepSeen::Entry(Some(from)), StepSeen::Entry(Some(to))] = &seen.steps[..] {
            self.then = self.transfer(from, to);
        }
    }
}
