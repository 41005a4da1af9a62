//! What answers hold that are made and not taken by their readers yet: memory, and operations of streams.
//!
//! Owns the bounds on all of it together and on the share of one account. A page is made in milliseconds and may take a slow reader a
//! minute to take, so it is not what is at work that bounds them. Never delays an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::connection::monitor::{OnItsWay, Taking};
use crate::gateway::admission::accounts::Account;
use crate::gateway::admission::alive::AliveTable;
use crate::gateway::failure::Failure;
use crate::limits;

/// What all answers of this node hold, and who holds how much.
#[derive(Debug)]
pub struct AnswerMemory {
    all: Arc<Totals>,
    shares: AliveTable<Account, Share>,
}

/// What all accounts hold together.
#[derive(Debug)]
struct Totals {
    bytes_max: usize,
    bytes: AtomicUsize,
    stream_ops: AtomicUsize,
}

/// What one account holds.
#[derive(Debug)]
pub struct Share {
    all: Arc<Totals>,
    bytes: AtomicUsize,
    stream_ops: AtomicUsize,
}

/// A long answer or a part of one. Counted as long as anything of it is somewhere on its way.
struct Held {
    bytes: Bytes,
    share: Arc<Share>,
    /// Tells on the reader.
    _on_its_way: OnItsWay,
}

impl Held {
    /// With what it takes beside its bytes: frames of some bytes are many.
    fn cost(&self) -> usize {
        self.bytes.len() + limits::HELD_FRAME_BYTES
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let cost = self.cost();
        self.share.bytes.fetch_sub(cost, Ordering::Relaxed);
        self.share.all.bytes.fetch_sub(cost, Ordering::Relaxed);
    }
}

impl AnswerMemory {
    /// All of it free.
    pub fn new(bytes_max: usize) -> Self {
        let all = Totals { bytes_max, bytes: AtomicUsize::new(0), stream_ops: AtomicUsize::new(0) };
        Self { all: Arc::new(all), shares: AliveTable::default() }
    }

    /// Bytes of long answers at the moment.
    pub fn held(&self) -> usize {
        self.all.bytes.load(Ordering::Relaxed)
    }

    /// What this account holds.
    pub fn share(&self, account: Account) -> Arc<Share> {
        let [bytes, stream_ops] = Default::default();
        self.shares.get(account, || Share { all: Arc::clone(&self.all), bytes, stream_ops })
    }
}

impl Share {
    /// Refuses to make more long answers for this account while it holds, or all hold, as much as they may.
    pub fn check(&self) -> Result<(), Failure> {
        let why = if self.all.bytes.load(Ordering::Relaxed) >= self.all.bytes_max {
            "answers that their readers have not taken hold all the memory they may"
        } else if self.bytes.load(Ordering::Relaxed) >= self.all.bytes_max / limits::ANSWERS_SHARE {
            "answers that this account has not taken hold all the memory that one may"
        } else {
            return Ok(());
        };
        Err(Failure::too_many(why))
    }

    /// Whether a stream may make its next answers. One of an account that holds nothing always may, so that each goes on.
    pub fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) == 0 || self.check().is_ok()
    }

    /// Counts these bytes until nothing of them is left, and has the connection ended where its peer is too slow to take them.
    pub fn hold(self: &Arc<Self>, bytes: Bytes, taking: &Taking) -> Bytes {
        let held = Held { _on_its_way: taking.hand_on(bytes.len()), bytes, share: Arc::clone(self) };
        let cost = held.cost();
        self.bytes.fetch_add(cost, Ordering::Relaxed);
        self.all.bytes.fetch_add(cost, Ordering::Relaxed);
        Bytes::from_owner(held)
    }

    /// Whether the streams of this account may have one more operation under way.
    pub fn has_stream_room(&self) -> bool {
        self.stream_ops.load(Ordering::Relaxed) < limits::STREAM_OPS_OF_ACCOUNT_MAX
            && self.all.stream_ops.load(Ordering::Relaxed) < limits::STREAM_OPS_OF_ALL_MAX
    }

    /// Counts an operation of a stream until what is returned is dropped.
    pub fn stream_op(self: &Arc<Self>) -> StreamOp {
        self.stream_ops.fetch_add(1, Ordering::Relaxed);
        self.all.stream_ops.fetch_add(1, Ordering::Relaxed);
        StreamOp(Arc::clone(self))
    }
}

/// An operation of a stream whose answer was not sent on yet.
#[derive(Debug)]
pub struct StreamOp(Arc<Share>);

impl Drop for StreamOp {
    fn drop(&mut self) {
        self.0.stream_ops.fetch_sub(1, Ordering::Relaxed);
        self.0.all.stream_ops.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Weak;
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::connection::monitor::ConnectionMonitor;

    fn account(last: u8) -> Account {
        Account::Neighbour(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)).into())
    }

    fn taking() -> Taking {
        ConnectionMonitor::new(CancellationToken::new(), Duration::from_secs(60), Weak::new()).watch_taking()
    }

    #[test]
    fn what_is_held_counts_until_its_last_byte_is_gone() {
        let memory = AnswerMemory::new(1_000_000);
        let share = memory.share(account(1));
        let mut bytes = share.hold(vec![7; 150_000].into(), &taking());
        let cost = 150_000 + limits::HELD_FRAME_BYTES;
        assert_eq!((memory.held(), bytes.len()), (cost, 150_000));
        let last = bytes.split_off(149_999);
        drop(bytes);
        assert_eq!(memory.held(), cost, "a byte is on its way");
        drop(last);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn one_account_leaves_the_rest_to_others() {
        let memory = AnswerMemory::new(400_000);
        let (greedy, other) = (memory.share(account(1)), memory.share(account(2)));
        let held = greedy.hold(vec![7; 100_000].into(), &taking());
        assert!(greedy.check().is_err() && memory.share(account(1)).check().is_err() && !greedy.has_room());
        assert!(other.check().is_ok() && other.has_room());
        let rest: Vec<_> = (3..6).map(|n| memory.share(account(n)).hold(vec![7; 100_000].into(), &taking())).collect();
        assert!(other.check().is_err(), "all of it is taken");
        assert!(other.has_room(), "a stream of somebody who holds nothing goes on");
        drop((held, rest));
        assert!(greedy.check().is_ok() && other.check().is_ok());
    }

    #[test]
    fn streams_of_one_account_have_a_part_of_all_operations() {
        let memory = AnswerMemory::new(1);
        let (greedy, other) = (memory.share(account(1)), memory.share(account(2)));
        let held: Vec<_> = (0..limits::STREAM_OPS_OF_ACCOUNT_MAX).map(|_| greedy.stream_op()).collect();
        assert!(!greedy.has_stream_room() && other.has_stream_room());
        let rest = limits::STREAM_OPS_OF_ALL_MAX - held.len();
        let others: Vec<_> = (0..rest).map(|n| memory.share(account(3 + (n % 200) as u8)).stream_op()).collect();
        assert!(!other.has_stream_room(), "all of them are taken");
        drop((held, others));
        assert!(greedy.has_stream_room() && other.has_stream_room());
    }
}
