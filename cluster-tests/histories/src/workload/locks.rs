//! W4: a lock, or an election, that clients compete for, and a register that only its holder may write.
//!
//! Owns one client of that, and that nobody who is not the only client is alone at what it asks for. Some hold for longer than
//! their session lives and then write as if they still held: the guard has to refuse that.

use rand::RngExt;
use rand::rngs::StdRng;

use super::{Next, Script, Workload};
use crate::operation::{Hold, Operation, Write};
use crate::record::{Micros, Record, Seen};

/// How long a session lives, in milliseconds.
const TTL_MS: u64 = 1_000;
/// How often it is renewed while its client is well.
const RENEWAL: Micros = 300_000;
/// How long a place in the queue is kept, in milliseconds.
const WAIT_MS: u64 = 2_000;

/// Locks and elections.
#[derive(Debug, Clone, Copy)]
pub struct Locks;

impl Workload for Locks {
    fn name(&self) -> &'static str {
        "locks"
    }

    fn script(&self, number: usize, of: usize) -> Box<dyn Script> {
        // From four clients on there are two at least at each. Fewer are all at the same: three at the election, which would have
        // nobody in small runs otherwise.
        let is_candidate = of == 3 || (of > 3 && number.is_multiple_of(3));
        let hold = if is_candidate { Hold::Election("locks-e".into()) } else { Hold::Lock("locks-l".into()) };
        Box::new(Client { hold, number, written: 0, session: None, renewed: 0, token: None, writes_left: 0 })
    }
}

struct Client {
    hold: Hold,
    number: usize,
    written: u64,
    session: Option<String>,
    renewed: Micros,
    token: Option<u64>,
    writes_left: u32,
}

impl Client {
    fn register(&self) -> String {
        match &self.hold {
            Hold::Lock(name) | Hold::Election(name) => format!("locks/{name}"),
        }
    }

    fn with_lock(&mut self, token: u64, dice: &mut StdRng) -> Next {
        if self.writes_left == 0 {
            self.token = None;
            return Next::Do(Operation::Release { hold: self.hold.clone(), token });
        }
        self.writes_left -= 1;
        match dice.random_range(0..40) {
            // It falls asleep, and believes that no time has passed.
            0 => Next::Pause(dice.random_range(500_000..4_500_000)),
            1..8 => Next::Pause(dice.random_range(1_000..50_000)),
            _ => {
                self.written += 1;
                let value = format!("{}.{}", self.number, self.written);
                Next::Do(Operation::Write(Write::put(self.register(), value).guard(self.hold.clone(), token)))
            }
        }
    }
}

impl Script for Client {
    fn next(&mut self, now: Micros, dice: &mut StdRng) -> Next {
        let Some(session) = self.session.clone() else {
            self.renewed = now;
            return Next::Do(Operation::OpenSession { ttl_ms: TTL_MS });
        };
        if now >= self.renewed + RENEWAL {
            self.renewed = now;
            return Next::Do(Operation::Renew { session });
        }
        match self.token {
            Some(token) => self.with_lock(token, dice),
            None => match dice.random_range(0..60) {
                0 => Next::Do(Operation::EndSession { session }),
                1..10 => Next::Pause(dice.random_range(10_000..100_000)),
                10 => Next::Pause(dice.random_range(500_000..4_500_000)),
                11..20 => Next::Do(Operation::Get { key: self.register() }),
                _ => Next::Do(Operation::Acquire { hold: self.hold.clone(), session, wait_ms: WAIT_MS }),
            },
        }
    }

    fn learn(&mut self, record: &Record) {
        let seen = record.decided().map(|decided| &decided.seen);
        match (&record.operation, seen) {
            (Operation::OpenSession { .. }, Some(Seen::Session(id))) => self.session = Some(id.clone()),
            (Operation::EndSession { .. }, Some(_)) => (self.session, self.token) = (None, None),
            (Operation::Acquire { .. }, Some(Seen::Held { token })) if self.token.is_none() => {
                (self.token, self.writes_left) = (Some(*token), 12);
            }
            (_, Some(Seen::Refused(refused))) if refused.code == "session_expired" => {
                (self.session, self.token) = (None, None);
            }
            (Operation::Write(_), Some(Seen::Refused(_))) => self.token = None,
            _ => {}
        }
    }
}
