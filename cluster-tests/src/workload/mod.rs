//! What clients do while a cluster is hurt, and how that is recorded.
//!
//! Owns the workloads, each a pure generator of operations that knows no network: the simulated store and real nodes run the
//! same ones. Who drives them, sends and records stands in `driver`; what hurts the cluster in `nemesis`. Both know nodes only by
//! number and address, so proxies may stand between.

pub mod accounts;
pub mod aged;
pub mod bounded;
pub mod client;
pub mod clock_faults;
pub mod counters;
pub mod crossing;
pub mod disk_faults;
pub mod driver;
pub mod etcd_registers;
pub mod etcd_wire;
mod fault_targets;
pub mod fleeting;
pub mod large;
pub mod locks;
pub mod member_faults;
pub mod nemesis;
pub mod network_faults;
pub mod process_faults;
pub mod progress;
pub mod registers;
pub mod scenarios;
pub mod set;
pub mod tasks;
pub mod times;
pub mod watcher;
pub mod wire;

use rand::rngs::StdRng;

use crate::history::operation::Operation;
use crate::history::record::{Micros, Record};

/// What a client does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This, at once.
    Do(Operation),
    /// Nothing for so long.
    Pause(Micros),
}

/// One client: it says what it does, is told what came of it, and says what it does next.
pub trait Script: Send {
    /// What to do at this time.
    fn next(&mut self, now: Micros, dice: &mut StdRng) -> Next;

    /// What came of what it did.
    fn learn(&mut self, record: &Record);
}

/// A kind of clients.
pub trait Workload {
    /// Its name, which is also how its keys, locks and queues begin.
    fn name(&self) -> &'static str;

    /// The client of this number, of so many.
    fn script(&self, number: usize, of: usize) -> Box<dyn Script>;

    /// What its clients list when all is over, through each node.
    fn last_reads(&self) -> Vec<Operation> {
        vec![Operation::List { prefix: format!("{}/", self.name()) }]
    }
}
