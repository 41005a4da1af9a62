//! Work that takes no more of the processors than its account may.
//!
//! Owns when a connection, and what runs beside it, is polled, and how long a request waits before more is begun for it elsewhere. Never holds up
//! what holds a place that others wait for: see [`hold_awake`]. Never decides how much an account may take: [`super::pace`] does.

use std::cell::{OnceCell, RefCell};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use quorate_threads::watchdog;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::gateway::admission::pace::Pace;
use crate::gateway::admission::turns::{ConnectionAccount, Lanes};

thread_local! {
    /// How many places that others wait for are held by what is being polled.
    static HELD: RefCell<Option<Arc<AtomicUsize>>> = const { RefCell::new(None) };
}

pin_project! {
    /// A connection that takes no more than the share of the account that it is on.
    pub struct Paced<F> {
        #[pin]
        connection: F,
        account: Arc<ConnectionAccount>,
        lanes: (usize, Arc<Lanes>),
        held: Arc<AtomicUsize>,
        pause: Option<Pause>,
    }
}

/// Longest wait of the first read in line: an account that always owes is to see its changes, too, and those in line are not to come all at once.
pub const READ_WAIT_MAX: Duration = Duration::from_millis(100);

/// Longest wait of a connection in line. The monitor of connections must not take it for a stalled one.
const IN_LINE_MAX: Duration = Duration::from_secs(1);

/// Until a connection may go on. Then it is the first of its account, until it was polled, unless the line was too long.
type Pause = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

/// One that is counted among those that wait.
struct HeldUp(Arc<Pace>);

impl HeldUp {
    fn begin(pace: Arc<Pace>) -> Self {
        pace.hold_up();
        Self(pace)
    }
}

impl Drop for HeldUp {
    fn drop(&mut self) {
        self.0.held_up.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until nothing keeps one of these from going on, behind those that wait already. It is the first until what is returned is dropped.
async fn wait_in_line(
    lanes: &Lanes,
    first: &Arc<Semaphore>,
    pause: impl Fn(Instant) -> Option<Instant>,
) -> OwnedSemaphorePermit {
    let _counted = HeldUp::begin(Arc::clone(lanes.share.pace()));
    let first = Arc::clone(first).acquire_owned().await.expect("the semaphore is never closed");
    while let Some(until) = pause(Instant::now()) {
        tokio::time::sleep_until(until.into()).await;
    }
    first
}

/// Waits until an account has paid for what its connections took.
async fn connection_in_line(lanes: Arc<Lanes>) -> Option<OwnedSemaphorePermit> {
    let share = &lanes.share;
    let waits = wait_in_line(&lanes, &share.first_connection, |now| share.pause(now));
    tokio::time::timeout(IN_LINE_MAX, waits).await.ok()
}

impl<F> Paced<F> {
    /// Counts what this one does.
    pub fn new(connection: F, account: &Arc<ConnectionAccount>) -> Self {
        let (account, lanes, held) = (Arc::clone(account), account.lanes_now(), Arc::default());
        Self { connection, account, lanes, held, pause: None }
    }

    /// The connection itself.
    pub fn connection(self: Pin<&mut Self>) -> Pin<&mut F> {
        self.project().connection
    }
}

impl<F: Future> Future for Paced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let (mut now, mut first) = (Instant::now(), None);
        if this.account.has_changed(this.lanes.0) {
            (*this.lanes, *this.pause) = (this.account.lanes_now(), None);
        }
        if this.account.is_paced && this.held.load(Ordering::Relaxed) == 0 {
            if this.pause.is_none() && this.lanes.1.share.pause(now).is_some() {
                *this.pause = Some(Box::pin(connection_in_line(Arc::clone(&this.lanes.1))));
            }
            // Something else than the end of its wait may have woken it up.
            if let Some(pause) = this.pause {
                first = std::task::ready!(pause.as_mut().poll(cx));
                now = Instant::now();
            }
        }
        *this.pause = None;
        let _inner = Inner::begin(this.held);
        let polled = this.lanes.1.share.step(now, || watchdog::step("connection", || this.connection.poll(cx)));
        // The next one waits for what this one took.
        drop(first);
        polled
    }
}

/// The work that is being polled, until this is dropped; then the work that polled it.
struct Inner(Option<Arc<AtomicUsize>>);

impl Inner {
    fn begin(held: &Arc<AtomicUsize>) -> Self {
        Self(HELD.replace(Some(Arc::clone(held))))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        HELD.set(self.0.take());
    }
}

/// Keeps a future from being held up, until this is dropped.
#[derive(Debug)]
pub struct HeldAwake(Option<Arc<AtomicUsize>>);

/// Keeps the future that is being polled from being held up, for as long as it waits for a place of all callers or holds it. Such a place goes to
/// the longest waiter, and nobody could use it while that one is held up.
pub fn hold_awake() -> HeldAwake {
    let held = HELD.with_borrow(Clone::clone);
    if let Some(held) = &held {
        held.fetch_add(1, Ordering::Relaxed);
    }
    HeldAwake(held)
}

impl Drop for HeldAwake {
    fn drop(&mut self) {
        if let Some(held) = &self.0 {
            held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Waits until an account has paid for all that was done for it, before a request of it begins; no longer than until the deadline. Returns whether
/// that was in time. A caller must not hold anything here that others wait for.
pub async fn paid(lanes: &Arc<Lanes>, deadline: Instant) -> bool {
    let share = &lanes.share;
    if share.pause_elsewhere(Instant::now()).is_none() {
        return true;
    }
    let waits = wait_in_line(lanes, &share.first_request, |now| share.pause_elsewhere(now));
    let is_paid = tokio::time::timeout_at(deadline.into(), waits).await.is_ok();
    if !is_paid {
        share.pace().refuse();
    }
    is_paid
}

/// Waits likewise before a watch of it reads on disk; the first in line waits no longer than [`READ_WAIT_MAX`]. Such reads have a line of their own: a
/// thousand watches that come back at once must not stand before the requests of their account.
pub async fn read_paid(lanes: &Arc<Lanes>) {
    let share = &lanes.share;
    if share.pause_elsewhere(Instant::now()).is_none() {
        return;
    }
    let until = OnceCell::new();
    let pause = move |now| {
        let until = *until.get_or_init(|| now + READ_WAIT_MAX);
        share.pause_elsewhere(now).map(|paid_at| paid_at.min(until)).filter(|_| now < until)
    };
    drop(wait_in_line(lanes, &share.first_read, pause).await);
}

/// Has what belongs to a connection, and runs beside it, take from the same share.
#[derive(Clone)]
pub struct PacedExecutor(pub Arc<ConnectionAccount>);

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for PacedExecutor {
    fn execute(&self, future: F) {
        watchdog::spawn(Paced::new(future, &self.0));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::gateway::admission::turns::Turns;

    const MILLI: Duration = Duration::from_millis(1);

    fn connection(is_paced: bool) -> (Arc<Turns>, Arc<ConnectionAccount>) {
        let turns = Arc::new(Turns::default());
        turns.pace.have_late(2);
        let connection = ConnectionAccount::new(&turns, IpAddr::V4(Ipv4Addr::LOCALHOST).into(), is_paced);
        (turns, connection)
    }

    fn spin(lasts: Duration) {
        let begun = watchdog::processor_time();
        while watchdog::processor_time() - begun < lasts {}
    }

    /// How often a future is polled by the runtime that comes to its end at the tenth of its steps, each of which takes 5 ms of a processor.
    async fn polls(is_paced: bool, hold: bool) -> usize {
        let (_turns, connection) = connection(is_paced);
        let (mut steps, mut held) = (0, None);
        let busy = std::future::poll_fn(move |cx| {
            spin(5 * MILLI);
            if hold && steps == 0 {
                held = Some(hold_awake());
            }
            steps += 1;
            cx.waker().wake_by_ref();
            if steps < 10 {
                return Poll::Pending;
            }
            drop(held.take());
            Poll::Ready(())
        });
        let (mut paced, mut polls) = (Box::pin(Paced::new(busy, &connection)), 0);
        std::future::poll_fn(|cx| {
            polls += 1;
            paced.as_mut().poll(cx)
        })
        .await;
        polls
    }

    #[tokio::test]
    async fn a_connection_is_held_up_but_not_while_it_holds_a_place_nor_at_the_port_of_operators() {
        assert!(polls(true, false).await > 10, "it was polled in vain");
        assert_eq!(polls(true, true).await, 10);
        assert_eq!(polls(false, false).await, 10);
    }

    #[tokio::test]
    async fn connections_of_an_account_that_owes_go_on_one_by_one_and_none_waits_for_ever() {
        let (turns, connection) = connection(true);
        let lanes = connection.lanes();
        let first = Arc::clone(&lanes.share.first_connection).acquire_owned().await.expect("it is open");
        let begun = Instant::now();
        lanes.share.step(begun, || spin(100 * MILLI));
        let next = Paced::new(async {}, &connection);
        let seen = async {
            tokio::time::sleep(10 * MILLI).await;
            turns.pace.told()
        };
        let ((), told) = tokio::join!(next, seen);
        assert_eq!((told.held_up, told.late), (Some(1), Some(true)));
        assert!(begun.elapsed() >= IN_LINE_MAX - 10 * MILLI, "somebody else was the first: {:?}", begun.elapsed());
        drop(first);
        assert_eq!(turns.pace.told().held_up, Some(0));
    }

    #[tokio::test]
    async fn reads_of_an_account_that_always_owes_go_on_one_by_one() {
        let (_turns, connection) = connection(true);
        let lanes = connection.lanes();
        let begun = Instant::now();
        read_paid(&lanes).await;
        assert!(begun.elapsed() < READ_WAIT_MAX, "it owes nothing");
        lanes.share.spend(Duration::from_secs(60));
        let begun = Instant::now();
        let both = async { tokio::join!(read_paid(&lanes), read_paid(&lanes)) };
        let first = read_paid(&lanes);
        let (_, ((), ())) = tokio::join!(first, both);
        let took = begun.elapsed();
        assert!(
            took >= 3 * READ_WAIT_MAX && took < Duration::from_secs(1),
            "one after the other, before it has paid: {took:?}"
        );
    }

    #[tokio::test]
    async fn nothing_is_held_awake_outside() {
        assert!(hold_awake().0.is_none());
    }

    #[tokio::test]
    async fn a_request_of_whoever_owes_waits_until_it_has_paid_and_not_beyond_its_deadline() {
        let (turns, connection) = connection(true);
        let lanes = connection.lanes();
        let begun = Instant::now();
        lanes.share.spend(50 * MILLI);
        assert!(paid(&lanes, begun + Duration::from_secs(60)).await);
        assert!(
            begun.elapsed() > 300 * MILLI,
            "50 ms, of which a share of 0.6 ms comes back in 10 ms: {:?}",
            begun.elapsed()
        );
        assert_eq!(turns.pace.told().share_refused, 0, "it only waited");
        lanes.share.spend(Duration::from_secs(60));
        assert!(!paid(&lanes, Instant::now() + 10 * MILLI).await);
        let told = turns.pace.told();
        assert_eq!((told.refused, told.share_refused, told.held_up), (0, 1, Some(0)));
    }
}
