//! What answers hold that are made and not taken by their readers yet: memory, and operations of streams.
//!
//! Owns the bounds on all of it together and on the share of one account, and the choice of connections to end when all of it is held. A
//! page is made in milliseconds and may take a slow reader a minute to take, so bounds on requests at work do not bound answers. Never
//! delays an answer that is made.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use quorate_api::{Applied, ErrorCode, NodeResource, NodeResourceKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::alive_table::AliveTable;
use crate::connection::monitor::{ConnectionMonitor, OnItsWay, Taking};
use crate::gateway::admission::accounts::Account;
use crate::gateway::admission::refusals::{Amounts, Held as HeldBy, Met, Numbers, Refusals};
use crate::gateway::admission::seldom::Seldom;
use crate::gateway::failure::Failure;
use crate::limits;

/// What all answers of this node hold, and who holds how much.
#[derive(Debug, Clone)]
pub struct AnswerMemory(Arc<Totals>);

/// What all accounts hold together.
#[derive(Debug)]
struct Totals {
    bytes_max: usize,
    bytes: AtomicUsize,
    stream_ops: AtomicUsize,
    /// For each value that is asked for of a command under way.
    values: Arc<Semaphore>,
    shares: AliveTable<Account, Share>,
    /// Room is asked for this often.
    wanted: Seldom,
    refused_bytes: Refusals,
    refused_values: Refusals,
    refused_stream_ops: Refusals,
}

/// What one account holds.
#[derive(Debug)]
pub struct Share {
    all: Arc<Totals>,
    account: Account,
    bytes: AtomicUsize,
    stream_ops: AtomicUsize,
    /// Its part of those of all.
    values: Arc<Semaphore>,
    /// The same for operations of streams. Others have no part in it: nobody knows when those are read.
    stream_values: Arc<Semaphore>,
    /// The same for operations of streams that show one only if they are refused.
    stream_refusals: Arc<Semaphore>,
    /// Its connections with something on its way, each by where it is.
    readers: AliveTable<usize, ConnectionMonitor>,
}

/// Room for the values of an answer, from before its command is decided until the answer is there.
///
/// A command that has taken effect has to be answered, even if nobody reads the answer. Too many at once would come to more than all
/// answers may hold before the first of them is held.
#[derive(Debug)]
pub struct ValuesRoom {
    _share: Arc<Share>,
    _of_account: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
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
        self.share.give_back(self.cost());
    }
}

/// The memory for an answer that is made in parts, until it is made.
#[derive(Debug)]
pub struct Made {
    share: Arc<Share>,
    bytes: usize,
}

impl Made {
    /// It takes `bytes` by now, never fewer than before.
    pub fn grow_to(&mut self, bytes: usize) {
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 {
            self.share.take(more);
            self.bytes += more;
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        self.share.give_back(self.bytes);
    }
}

impl AnswerMemory {
    /// All of it free.
    pub fn new(bytes_max: usize) -> Self {
        use NodeResourceKind::{Answers, StreamOps, Values};
        let ([bytes, stream_ops], shares) = Default::default();
        let values = Arc::new(Semaphore::new(limits::ASKED_VALUES_OF_ALL_MAX));
        let wanted = Seldom::new(Duration::from_millis(limits::ANSWER_ROOM_WANTED_MS));
        let [refused_bytes, refused_values, refused_stream_ops] = [Answers, Values, StreamOps].map(Refusals::new);
        Self(Arc::new(Totals {
            bytes_max,
            bytes,
            stream_ops,
            values,
            shares,
            wanted,
            refused_bytes,
            refused_values,
            refused_stream_ops,
        }))
    }

    /// The bytes, the values and the operations of streams, for the metrics.
    pub fn numbers(&self) -> [Numbers; 3] {
        let all = &self.0;
        [
            all.refused_bytes.numbers(all.bytes()),
            all.refused_values.numbers(all.values()),
            all.refused_stream_ops.numbers(all.stream_ops()),
        ]
    }

    /// The same with the accounts that hold most, for operators.
    pub fn told(&self) -> [NodeResource; 3] {
        let all = &self.0;
        [
            all.refused_bytes.told(all.held_bytes()),
            all.refused_values.told(all.held_values()),
            all.refused_stream_ops.told(all.held_stream_ops()),
        ]
    }

    /// Bytes of long answers at the moment.
    pub fn held(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// What this account holds.
    pub fn share(&self, account: Account) -> Arc<Share> {
        let make = || {
            let (account, [bytes, stream_ops]) = (account.clone(), Default::default());
            let [values, stream_values, stream_refusals] = [
                limits::ASKED_VALUES_OF_ACCOUNT_MAX,
                limits::STREAM_VALUES_OF_ACCOUNT_MAX,
                limits::STREAM_REFUSALS_OF_ACCOUNT_MAX,
            ]
            .map(|most| Arc::new(Semaphore::new(most)));
            let (all, readers) = (Arc::clone(&self.0), AliveTable::default());
            Share { all, account, bytes, stream_ops, values, stream_values, stream_refusals, readers }
        };
        self.0.shares.get(account.clone(), make)
    }
}

impl Totals {
    fn bytes(&self) -> Amounts {
        let (bound, taken) = (self.bytes_max, self.bytes.load(Ordering::Relaxed));
        Amounts { bound, of_one: bound / limits::ANSWERS_SHARE, taken }
    }

    fn values(&self) -> Amounts {
        let (bound, of_one) = (limits::ASKED_VALUES_OF_ALL_MAX, limits::ASKED_VALUES_OF_ACCOUNT_MAX);
        Amounts { bound, of_one, taken: bound - self.values.available_permits() }
    }

    fn stream_ops(&self) -> Amounts {
        let (bound, of_one) = (limits::STREAM_OPS_OF_ALL_MAX, limits::STREAM_OPS_OF_ACCOUNT_MAX);
        Amounts { bound, of_one, taken: self.stream_ops.load(Ordering::Relaxed) }
    }

    fn held_by(&self, amounts: Amounts, of: fn(&Share) -> usize) -> HeldBy {
        let accounts = self.shares.all().into_iter().map(|share| (share.account.clone(), of(&share))).collect();
        HeldBy { amounts, accounts }
    }

    fn held_bytes(&self) -> HeldBy {
        self.held_by(self.bytes(), |share| share.bytes.load(Ordering::Relaxed))
    }

    fn held_values(&self) -> HeldBy {
        self.held_by(self.values(), |share| limits::ASKED_VALUES_OF_ACCOUNT_MAX - share.values.available_permits())
    }

    fn held_stream_ops(&self) -> HeldBy {
        self.held_by(self.stream_ops(), |share| share.stream_ops.load(Ordering::Relaxed))
    }

    /// Whether all hold as much as they may. Then somebody is asked for room.
    fn wants_room(&self) -> bool {
        let is_full = self.bytes.load(Ordering::Relaxed) >= self.bytes_max;
        if is_full {
            self.make_room();
        }
        is_full
    }

    /// Asks the account that holds most for room, now and then: those of its connections with most on its way end unless they take it at
    /// once. Nobody else has to wait until they are found to be slow.
    fn make_room(&self) {
        if !self.wanted.is_due() {
            return;
        }
        if let Some(largest) = self.shares.all().into_iter().max_by_key(|share| share.bytes.load(Ordering::Relaxed)) {
            largest.make_room();
        }
    }
}

impl Share {
    /// Refuses to make more long answers for this account while it holds, or all hold, as much as they may.
    pub fn check(&self) -> Result<(), Failure> {
        self.check_own(1)?;
        if self.all.wants_room() {
            self.all.refused_bytes.add(Met::All, || self.all.held_bytes());
            return Err(Failure::too_many("answers that their readers have not taken hold all the memory they may"));
        }
        Ok(())
    }

    /// Whether this account holds this many times its share.
    fn holds_shares(&self, parts: usize) -> bool {
        self.bytes.load(Ordering::Relaxed) >= parts * self.all.bytes_max / limits::ANSWERS_SHARE
    }

    /// Refuses requests of this account while it holds this many times its share. The memory that others hold is no reason.
    pub fn check_own(&self, parts: usize) -> Result<(), Failure> {
        if self.holds_shares(parts) {
            self.all.refused_bytes.add(Met::Share, || self.all.held_bytes());
            return Err(Failure::too_many("answers that this account has not taken hold all the memory that one may"));
        }
        Ok(())
    }

    /// Half of what it holds.
    fn make_room(&self) {
        let mut readers: Vec<_> =
            self.readers.all().into_iter().map(|reader| (reader.on_its_way() as usize, reader)).collect();
        readers.sort_by_key(|(bytes, _)| Reverse(*bytes));
        let (held, mut asked, mut connections) = (self.bytes.load(Ordering::Relaxed), 0, 0);
        for (bytes, reader) in readers.into_iter().take_while(|(bytes, _)| *bytes > 0) {
            if asked >= held.div_ceil(2) {
                break;
            }
            // Those that were asked before still have time.
            (asked, connections) = (asked + bytes, connections + usize::from(reader.want_room()));
        }
        if connections == 0 {
            return;
        }
        let account = &self.account;
        tracing::warn!(
            ?account,
            held,
            connections,
            "unread answers hold all memory for answers: asked who holds most for room"
        );
    }

    /// Takes room for this many values, at once or never.
    pub fn try_values(self: &Arc<Self>, values: usize) -> Option<ValuesRoom> {
        let values = to_permits(values);
        let own = Arc::clone(&self.values).try_acquire_many_owned(values);
        let all = own.and_then(|own| Ok((own, Arc::clone(&self.all.values).try_acquire_many_owned(values)?)));
        debug_assert!(!matches!(all, Err(TryAcquireError::Closed)), "these semaphores are never closed");
        all.ok().map(|permits| self.room(permits))
    }

    /// Takes room for this many values, once there is some. Its own first: a call that waits for that keeps nothing from others.
    pub async fn values(self: &Arc<Self>, values: usize) -> ValuesRoom {
        let values = to_permits(values);
        let own = Arc::clone(&self.values).acquire_many_owned(values).await.expect(OPEN);
        let all = Arc::clone(&self.all.values).acquire_many_owned(values).await.expect(OPEN);
        self.room((own, all))
    }

    /// Counts a call that waited in vain for room for this many values, and says what it waited for.
    pub fn refuse_values(&self, values: usize) -> Failure {
        let has_share = self.values.available_permits() >= to_permits(values) as usize;
        let met = if has_share { Met::All } else { Met::Share };
        self.all.refused_values.add(met, || self.all.held_values());
        let (of_one, of_all) = (limits::ASKED_VALUES_OF_ACCOUNT_MAX, limits::ASKED_VALUES_OF_ALL_MAX);
        let (holder, advice) = match met {
            Met::Share => ("of this account", "Send fewer of them at once"),
            Met::All => ("of all accounts", "Try again later"),
        };
        no_room(format!(
            "the deadline passed while this waited for room for {values} values of its answer, which commands {holder} have: \
             those in progress may ask for {of_one} of one account, and {of_all} of all. {advice}, or ask for no values (`prev`)"
        ))
    }

    fn room(self: &Arc<Self>, (own, all): (OwnedSemaphorePermit, OwnedSemaphorePermit)) -> ValuesRoom {
        ValuesRoom { _share: Arc::clone(self), _of_account: own, _of_all: all }
    }

    /// Whether a stream may make its next answers. One of an account that holds nothing always may, so that each goes on. A stream that may
    /// not waits: it is not refused.
    pub fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) == 0 || !(self.holds_shares(1) || self.all.wants_room())
    }

    /// Watches whether a connection takes what will be held for it, and finds it where room is needed.
    pub fn watch_taking(&self, monitor: &Arc<ConnectionMonitor>) -> Taking {
        self.readers.note(Arc::as_ptr(monitor).addr(), monitor);
        monitor.watch_taking()
    }

    /// Counts what an answer takes that is made in parts.
    pub fn makes(self: &Arc<Self>) -> Made {
        Made { share: Arc::clone(self), bytes: 0 }
    }

    fn take(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.all.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.all.wants_room();
    }

    fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.all.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts these bytes until nothing of them is left, and has the connection ended where its peer is too slow to take them.
    pub fn hold(self: &Arc<Self>, bytes: Bytes, taking: &Taking) -> Bytes {
        let held = Held { _on_its_way: taking.hand_on(bytes.len()), bytes, share: Arc::clone(self) };
        self.take(held.cost());
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

const OPEN: &str = "these semaphores are never closed";

/// The failure of a command that waited for room until its deadline, before it was decided.
fn no_room(detail: String) -> Failure {
    Failure::new(ErrorCode::Timeout, Applied::No, detail)
}

/// At most all permits of an account: a call for more would wait for ever.
fn to_permits(values: usize) -> u32 {
    values.min(limits::ASKED_VALUES_OF_ACCOUNT_MAX) as u32
}

/// Bytes that stay in memory anyway, such as a document of this program: their peer has to take them in time, and they are not counted.
pub fn lend(bytes: Bytes, taking: &Taking) -> Bytes {
    let on_its_way = taking.hand_on(bytes.len());
    Bytes::from_owner(Lent { bytes, _on_its_way: on_its_way })
}

/// See [`lend`].
struct Lent {
    bytes: Bytes,
    _on_its_way: OnItsWay,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// An operation of a stream whose answer was not sent on yet.
#[derive(Debug)]
pub struct StreamOp(Arc<Share>);

/// Room for the value that an operation of a stream shows, from before it is decided until its answer is written.
#[derive(Debug)]
pub struct StreamValue {
    _of_account: OwnedSemaphorePermit,
}

impl StreamOp {
    /// Takes room for the value that it shows, at once or never.
    pub fn try_value(&self) -> Option<StreamValue> {
        let permit = Arc::clone(&self.0.stream_values).try_acquire_owned();
        permit.ok().map(|of_account| StreamValue { _of_account: of_account })
    }

    /// Takes room for the entry that it shows if it is refused, at once or never.
    pub fn try_refusal(&self) -> Option<StreamValue> {
        let permit = Arc::clone(&self.0.stream_refusals).try_acquire_owned();
        permit.ok().map(|of_account| StreamValue { _of_account: of_account })
    }

    /// Says why an operation is not told the entry for which it was refused.
    pub fn no_entry() -> Failure {
        Failure::too_many(
            "this line was refused and changed nothing; the entry as it is has no room among the answers of the streams of this \
             account that are not sent yet. Read the answers sooner, and send the line again",
        )
    }

    /// Takes it once there is some.
    pub async fn value(&self) -> StreamValue {
        let of_account = Arc::clone(&self.0.stream_values).acquire_owned().await.expect(OPEN);
        StreamValue { _of_account: of_account }
    }

    /// Says what one waited for that waited for a value in vain.
    pub fn no_value() -> Failure {
        let most = limits::STREAM_VALUES_OF_ACCOUNT_MAX;
        no_room(format!(
            "the deadline passed while this line waited for room for the value that it shows: the streams of one account may \
             have {most} lines with values whose answers are not sent yet. Read the answers sooner, or ask for no values (`prev`)"
        ))
    }
}

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

    use tokio_util::sync::CancellationToken;

    use super::*;

    fn account(last: u8) -> Account {
        Account::Neighbour(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)).into())
    }

    fn monitor() -> Arc<ConnectionMonitor> {
        ConnectionMonitor::new(CancellationToken::new(), Duration::from_secs(60), Weak::new())
    }

    fn taking() -> Taking {
        monitor().watch_taking()
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
        let [bytes, ..] = memory.told();
        assert_eq!((bytes.bound, bytes.share, bytes.taken), (400_000, 100_000, memory.held() as u64));
        assert_eq!((bytes.refused, bytes.share_refused), (1, 2), "a stream that has no room waits");
        let names: Vec<_> = bytes.callers.iter().map(|caller| caller.name.as_deref().unwrap_or_default()).collect();
        assert_eq!(names, ["10.0.0.1", "10.0.0.3", "10.0.0.4", "10.0.0.5"], "who holds nothing is not named");
        drop((held, rest));
        assert!(greedy.check().is_ok() && other.check().is_ok());
    }

    #[test]
    fn who_holds_most_is_asked_for_room_once_all_is_held() {
        let memory = AnswerMemory::new(400_000);
        let readers: Vec<_> = [90_000, 60_000, 1_000, 300_000]
            .into_iter()
            .enumerate()
            .map(|(n, bytes)| {
                let monitor = monitor();
                // The first three are one account's.
                let share = memory.share(account((n / 3) as u8));
                let held = share.hold(vec![7; bytes].into(), &share.watch_taking(&monitor));
                (monitor, held)
            })
            .collect();
        let asked: Vec<_> = readers.iter().map(|(monitor, _)| monitor.has_to_make_room()).collect();
        assert_eq!(asked, [false, false, false, true]);
        let other = memory.share(account(9));
        assert!(other.check().is_err() && other.check_own(1).is_ok(), "a write of somebody else is none of this");
        assert!(!memory.0.wanted.is_due(), "not for each refusal");
    }

    #[test]
    fn the_half_with_most_on_its_way_is_asked_for() {
        let memory = AnswerMemory::new(usize::MAX);
        let share = memory.share(account(1));
        let readers: Vec<_> = [90_000, 70_000, 1_000]
            .into_iter()
            .map(|bytes| {
                let monitor = monitor();
                let held = share.hold(vec![7; bytes].into(), &share.watch_taking(&monitor));
                (monitor, held)
            })
            .collect();
        share.make_room();
        let asked: Vec<_> = readers.iter().map(|(monitor, _)| monitor.has_to_make_room()).collect();
        assert_eq!(asked, [true, false, false]);
    }

    #[test]
    fn what_is_made_in_parts_counts_until_it_is_made() {
        let memory = AnswerMemory::new(400_000);
        let share = memory.share(account(1));
        let mut made = share.makes();
        made.grow_to(60_000);
        assert_eq!((memory.held(), share.check_own(1).is_ok()), (60_000, true));
        made.grow_to(100_000);
        assert_eq!((memory.held(), share.check_own(1).is_ok()), (100_000, false));
        drop(made);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn what_is_lent_counts_for_its_reader_alone() {
        let memory = AnswerMemory::new(1_000_000);
        let monitor = monitor();
        let lent = lend(vec![7; 150_000].into(), &monitor.watch_taking_lent());
        assert_eq!((memory.held(), lent.len()), (0, 150_000));
        assert_eq!(monitor.on_its_way(), 0, "to have it taken gives nobody room");
    }

    #[tokio::test]
    async fn values_of_one_account_leave_room_for_those_of_others() {
        let memory = AnswerMemory::new(1);
        let (greedy, other) = (memory.share(account(1)), memory.share(account(2)));
        let all_of_one = greedy.values(usize::MAX).await;
        assert!(memory.share(account(1)).try_values(1).is_none() && other.try_values(1).is_some());
        let refused = greedy.refuse_values(1);
        assert_eq!((refused.code(), refused.applied()), (ErrorCode::Timeout, Applied::No));
        assert!(refused.detail().contains("which commands of this account have"), "{refused:?}");
        let [_, values, _] = memory.told();
        let (of_one, of_all) = (limits::ASKED_VALUES_OF_ACCOUNT_MAX as u64, limits::ASKED_VALUES_OF_ALL_MAX as u64);
        assert_eq!((values.bound, values.share, values.taken, values.share_refused), (of_all, of_one, of_one, 1));
        assert_eq!(values.callers.iter().map(|caller| caller.held).collect::<Vec<_>>(), [of_one]);
        drop(greedy);
        let waits = memory.share(account(1));
        let mut waiting = std::pin::pin!(waits.values(1));
        assert!(futures::poll!(waiting.as_mut()).is_pending(), "its share is kept as long as something of it is held");
        drop(all_of_one);
        drop(waiting.await);
        let accounts = limits::ASKED_VALUES_OF_ALL_MAX / limits::ASKED_VALUES_OF_ACCOUNT_MAX;
        let held: Vec<_> =
            (0..accounts).filter_map(|n| memory.share(account(10 + n as u8)).try_values(usize::MAX)).collect();
        assert!(held.len() == accounts && other.try_values(1).is_none(), "all of it is taken");
        assert!(other.refuse_values(1).detail().contains("which commands of all accounts have"));
    }

    #[tokio::test]
    async fn operations_of_streams_show_so_many_values_at_once() {
        let memory = AnswerMemory::new(1);
        let op = memory.share(account(1)).stream_op();
        let most = limits::STREAM_VALUES_OF_ACCOUNT_MAX;
        let held: Vec<_> = std::iter::from_fn(|| op.try_value()).take(most + 1).collect();
        assert_eq!(held.len(), most);
        assert!(memory.share(account(2)).stream_op().try_value().is_some(), "those of others are their own");
        let mut waiting = std::pin::pin!(op.value());
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        drop(held);
        drop(waiting.await);
    }

    #[test]
    fn so_many_operations_of_streams_have_room_for_what_their_refusals_show() {
        let memory = AnswerMemory::new(1);
        let op = memory.share(account(1)).stream_op();
        let most = limits::STREAM_REFUSALS_OF_ACCOUNT_MAX;
        let held: Vec<_> = std::iter::from_fn(|| op.try_refusal()).take(most + 1).collect();
        assert_eq!(held.len(), most);
        assert!(op.try_value().is_some(), "what is asked for has room of its own");
        assert!(memory.share(account(2)).stream_op().try_refusal().is_some(), "that of others is their own");
        drop(held);
        assert!(op.try_refusal().is_some());
    }

    #[test]
    fn streams_of_one_account_have_a_part_of_all_operations() {
        let memory = AnswerMemory::new(1);
        let (greedy, other) = (memory.share(account(1)), memory.share(account(2)));
        let held: Vec<_> = (0..limits::STREAM_OPS_OF_ACCOUNT_MAX).map(|_| greedy.stream_op()).collect();
        assert!(!greedy.has_stream_room() && other.has_stream_room());
        let [.., ops] = memory.told();
        let callers: Vec<_> = ops.callers.iter().map(|caller| (caller.name.as_deref(), caller.held)).collect();
        assert_eq!(callers, [(Some("10.0.0.1"), held.len() as u64)]);
        assert_eq!((ops.taken, ops.bound), (held.len() as u64, limits::STREAM_OPS_OF_ALL_MAX as u64));
        let rest = limits::STREAM_OPS_OF_ALL_MAX - held.len();
        let others: Vec<_> = (0..rest).map(|n| memory.share(account(3 + (n % 200) as u8)).stream_op()).collect();
        assert!(!other.has_stream_room(), "all of them are taken");
        drop((held, others));
        assert!(greedy.has_stream_room() && other.has_stream_room());
    }
}
