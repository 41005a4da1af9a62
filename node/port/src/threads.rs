//! The threads that serve client connections: those of the node's own runtime, and others beside it.
//!
//! Owns which connection is served where. Raft, peers and the proposer stay on the node's runtime, which on a machine with two cores is one
//! thread: alone it would serve the clients of this node with one core, and leave the other one idle. A connection stays where it began, and
//! the first ones begin on the node's runtime: a lone client is answered without another thread. Never serves anything itself.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Builder, Handle, Runtime};

/// So many connections go to the node's runtime before any goes elsewhere.
const FIRST: usize = 4;

/// What a connection on the node's runtime counts: its threads have Raft to do, too.
const OWN_WEIGHT: usize = 2;

/// A runtime takes a task from the queue that its threads share at least this often. A thread's own queue has room for 256; the rest goes to
/// the shared one, at which a busy thread looks once in ten tasks as it comes: of a thousand clients some waited ten times as long as most.
const SHARED_QUEUE_EVERY: u32 = 2;

/// A runtime as all of a node are, with so many threads.
pub fn runtime(threads: usize) -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).global_queue_interval(SHARED_QUEUE_EVERY).enable_all().build()
}

/// Threads beside those of the node's runtime, until it is dropped: not within a runtime.
pub struct ClientThreads(Vec<Runtime>);

impl ClientThreads {
    /// Starts so many.
    pub fn start(count: usize) -> io::Result<Self> {
        (0..count).map(|_| runtime(1)).collect::<io::Result<_>>().map(Self)
    }

    /// For [`super::ServeSettings::beside`].
    pub fn handles(&self) -> Vec<Handle> {
        self.0.iter().map(|runtime| runtime.handle().clone()).collect()
    }
}

/// Where connections are served, and how many are.
pub(super) struct Homes(Vec<Home>);

struct Home {
    runtime: Handle,
    threads: usize,
    /// Connections that do not count for its load.
    first: usize,
    /// What each other one counts.
    weight: usize,
    open: Arc<AtomicUsize>,
}

/// The place of a connection at its home, until it is dropped.
pub(super) struct Resident(Arc<AtomicUsize>);

impl Homes {
    /// This runtime, and those beside it.
    pub(super) fn new(beside: &[Handle]) -> Self {
        let own = Home::new(&Handle::current(), FIRST, OWN_WEIGHT);
        Self(std::iter::once(own).chain(beside.iter().map(|handle| Home::new(handle, 0, 1))).collect())
    }

    /// How many threads they have together.
    pub(super) fn threads(&self) -> usize {
        self.0.iter().map(|home| home.threads).sum()
    }

    /// A place for one more connection, where each thread has least to do.
    pub(super) fn settle(&self) -> (&Handle, Resident) {
        let home = self.0.iter().min_by_key(|home| home.load()).expect("there is this runtime");
        home.open.fetch_add(1, Ordering::Relaxed);
        (&home.runtime, Resident(Arc::clone(&home.open)))
    }
}

impl Home {
    fn new(runtime: &Handle, first: usize, weight: usize) -> Self {
        let threads = runtime.metrics().num_workers();
        Self { runtime: runtime.clone(), threads, first, weight, open: Arc::default() }
    }

    /// What each of its threads has, rounded down.
    fn load(&self) -> usize {
        self.weight * self.open.load(Ordering::Relaxed).saturating_sub(self.first) / self.threads
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_connections_stay_on_the_runtime_of_the_node_and_the_rest_is_shared_by_threads() {
        let (own, beside) = (runtime(2).unwrap(), ClientThreads::start(2).unwrap());
        let handles = beside.handles();
        let homes = own.block_on(async { Homes::new(&handles) });
        assert_eq!(homes.threads(), 4);
        let open = |homes: &Homes| homes.0.iter().map(|home| home.open.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let mut residents: Vec<_> = (0..FIRST).map(|_| homes.settle().1).collect();
        assert_eq!(open(&homes), [FIRST, 0, 0]);
        residents.extend((0..36).map(|_| homes.settle().1));
        assert_eq!(open(&homes), [FIRST + 12, 12, 12], "half as many on each thread that has Raft, too");
        residents.clear();
        assert_eq!(open(&homes), [0, 0, 0]);
    }
}
