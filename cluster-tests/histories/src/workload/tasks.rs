//! W8: tasks that are due some time later, and workers that do them, fail, or vanish with them.
//!
//! Owns one client of that; the first of them schedules, the others work. Where there are too few to compete for tasks in this way,
//! each does both.

use std::collections::VecDeque;

use rand::RngExt;
use rand::rngs::StdRng;

use super::{Next, Script, Workload};
use crate::operation::Operation;
use crate::record::{Micros, Record, Seen};

/// How long a claim holds, in milliseconds.
const LEASE_MS: u64 = 1_000;
const QUEUE: &str = "tasks";

/// Tasks.
#[derive(Debug, Clone, Copy)]
pub struct Tasks;

impl Workload for Tasks {
    fn name(&self) -> &'static str {
        QUEUE
    }

    fn script(&self, number: usize, of: usize) -> Box<dyn Script> {
        let (scheduler, worker) = (Scheduler { number, scheduled: 0 }, Worker { claimed: VecDeque::new() });
        match number {
            _ if of < 3 => Box::new(Both { scheduler, worker }),
            0 => Box::new(scheduler),
            _ => Box::new(worker),
        }
    }

    fn last_reads(&self) -> Vec<Operation> {
        Vec::new()
    }
}

struct Scheduler {
    number: usize,
    scheduled: u64,
}

impl Script for Scheduler {
    fn next(&mut self, _now: Micros, dice: &mut StdRng) -> Next {
        if dice.random_range(0..2) == 0 {
            return Next::Pause(dice.random_range(5_000..60_000));
        }
        self.scheduled += 1;
        let task = format!("t{}-{:05}", self.number, self.scheduled);
        let delay_ms = dice.random_range(0..1_500);
        Next::Do(Operation::Schedule { queue: QUEUE.into(), task, delay_ms })
    }

    fn learn(&mut self, _record: &Record) {}
}

struct Worker {
    claimed: VecDeque<(String, u64)>,
}

impl Script for Worker {
    fn next(&mut self, _now: Micros, dice: &mut StdRng) -> Next {
        let queue = QUEUE.to_owned();
        let Some((task, token)) = self.claimed.pop_front() else {
            return match dice.random_range(0..3) {
                0 => Next::Pause(dice.random_range(5_000..50_000)),
                _ => Next::Do(Operation::Claim { queue, limit: dice.random_range(1..4), lease_ms: LEASE_MS }),
            };
        };
        match dice.random_range(0..40) {
            // It vanishes with all that it claimed.
            0 => {
                self.claimed.clear();
                Next::Pause(dice.random_range(1_000..50_000))
            }
            // It hangs longer than its claim holds, and then believes itself done.
            1..4 => {
                self.claimed.push_front((task, token));
                Next::Pause(dice.random_range(600_000..1_500_000))
            }
            4..8 => Next::Do(Operation::Fail { queue, task, token }),
            _ => Next::Do(Operation::Complete { queue, task, token }),
        }
    }

    fn learn(&mut self, record: &Record) {
        if let Some(Seen::Claimed(claimed)) = record.decided().map(|decided| &decided.seen) {
            self.claimed.extend(claimed.iter().map(|claimed| (claimed.task.clone(), claimed.token)));
        }
    }
}

/// Schedules and works.
struct Both {
    scheduler: Scheduler,
    worker: Worker,
}

impl Script for Both {
    fn next(&mut self, now: Micros, dice: &mut StdRng) -> Next {
        match dice.random_range(0..3) {
            0 => self.scheduler.next(now, dice),
            _ => self.worker.next(now, dice),
        }
    }

    fn learn(&mut self, record: &Record) {
        self.worker.learn(record);
    }
}
