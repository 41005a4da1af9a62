//! What clients do while a cluster is hurt.
//!
//! Owns the workloads, each a pure generator of operations: the simulated store, simulated nodes and real ones run the same. Never knows a
//! network, or who drives it.

pub mod accounts;
pub mod counters;
pub mod etcd_registers;
pub mod fleeting;
pub mod locks;
pub mod registers;
pub mod set;
pub mod tasks;

use rand::rngs::StdRng;

use crate::operation::Operation;
use crate::record::{Micros, Record};

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
