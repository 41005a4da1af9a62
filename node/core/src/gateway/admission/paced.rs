//! Work that takes no more of the processors than its account may.
//!
//! Owns when a connection, and what runs beside it, is polled, and how long a request waits before more is begun for it elsewhere. What holds
//! a place that others wait for is never held up: see [`hold_awake`]. Never decides how much an account may take: [`super::pace`] does.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use quorate_threads::watchdog;
use tokio::sync::OwnedSemaphorePermit;

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

/// The longest time that a connection waits in line. Whoever looks whether it still gets on must not take it for a stalled one.
const IN_LINE_MAX: Duration = Duration::from_secs(1);

/// Until a connection may go on. Then it is the first of its account, until it was polled, unless the line was too long.
type Pause = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send>>;

/// One that is counted among those that wait.
struct HeldUp(Arc<Pace>);

impl HeldUp {
    fn begin(pace: Arc<Pace>) -> Self {
        pace.held_up.fetch_add(1, Ordering::Relaxed);
        Self(pace)
    }
}

impl Drop for HeldUp {
    fn drop(&mut self) {
        self.0.held_up.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits until an account has paid for what its connections took, behind those of its connections that wait already.
async fn wait_in_line(lanes: Arc<Lanes>) -> Option<OwnedSemaphorePermit> {
    let _counted = HeldUp::begin(Arc::clone(lanes.share.pace()));
    let waits = async {
        let first = Arc::clone(&lanes.share.first).acquire_owned().await.expect("the semaphore is never closed");
        while let Some(until) = lanes.share.pause(Instant::now()) {
            tokio::time::sleep_until(until.into()).await;
        }
        first
    };
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
        let mut now = Instant::now();
        let mut first = None;
        if this.account.is_paced && this.held.load(Ordering::Relaxed) == 0 {
            if this.account.has_changed(this.lanes.0) {
                *this.lanes = this.account.lanes_now();
            }
            if this.pause.is_none() && this.lanes.1.share.pause(now).is_some() {
                *this.pause = Some(Box::pin(wait_in_line(Arc::clone(&this.lanes.1))));
            }
            // One that waits goes on waiting, whatever woke it up.
            if let Some(pause) = this.pause {
                first = std::task::ready!(pause.as_mut().poll(cx));
                now = Instant::now();
            }
        }
        *this.pause = None;
        let outer = HELD.replace(Some(Arc::clone(this.held)));
        let polled = this.lanes.1.share.step(now, || watchdog::step("connection", || this.connection.poll(cx)));
        HELD.set(outer);
        // The next one waits for what this one took.
        drop(first);
        polled
    }
}

/// Keeps what is being polled from being held up, until it is dropped.
#[derive(Debug)]
pub struct HeldAwake(Option<Arc<AtomicUsize>>);

/// Has nothing hold up what is being polled while it waits for a place that others wait for, too, or holds it: such a place is given to whoever
/// waited longest, and would go unused while that one is held up.
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

/// Waits until an account has paid for all that was done for it, at most until then: before more is begun for it elsewhere.
pub async fn paid(lanes: &Arc<Lanes>, deadline: Instant) {
    loop {
        let now = Instant::now();
        match lanes.share.pause_elsewhere(now) {
            Some(until) if now < deadline => tokio::time::sleep_until(until.min(deadline).into()).await,
            _ => return,
        }
    }
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
    use crate::gateway::admission::pace::Pace;
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

    /// How long a future takes each of whose ten steps takes 5 ms of a processor.
    async fn took(is_paced: bool, hold: bool) -> Duration {
        let (_turns, connection) = connection(is_paced);
        let (mut rounds, mut held) = (0, None);
        let busy = std::future::poll_fn(move |cx| {
            spin(5 * MILLI);
            if hold && rounds == 0 {
                held = Some(hold_awake());
            }
            rounds += 1;
            cx.waker().wake_by_ref();
            if rounds < 10 {
                return Poll::Pending;
            }
            drop(held.take());
            Poll::Ready(())
        });
        let begun = Instant::now();
        Paced::new(busy, &connection).await;
        begun.elapsed()
    }

    #[tokio::test]
    async fn a_paced_future_is_held_up_and_comes_to_its_end() {
        // A share is 1.25 ms in 10 ms, so the steps before the last take 360 ms.
        assert!(took(true, false).await > 200 * MILLI);
    }

    #[tokio::test]
    async fn what_holds_a_place_or_belongs_to_the_port_of_operators_is_not_held_up() {
        assert!(took(true, true).await < 200 * MILLI);
        assert!(took(false, false).await < 200 * MILLI);
    }

    #[tokio::test]
    async fn connections_of_an_account_that_owes_go_on_one_by_one_and_none_waits_for_ever() {
        let (_turns, connection) = connection(true);
        let lanes = connection.lanes();
        lanes.share.step(Instant::now(), || spin(20 * MILLI));
        let (begun, polled) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
        let one = |_| {
            let polled = Arc::clone(&polled);
            let work = async move {
                spin(3 * MILLI);
                polled.fetch_add(1, Ordering::Relaxed);
            };
            Paced::new(work, &connection)
        };
        let all = futures::future::join_all((0..8).map(one));
        let seen = async {
            tokio::time::sleep(IN_LINE_MAX / 10).await;
            polled.load(Ordering::Relaxed)
        };
        let (_done, seen) = tokio::join!(all, seen);
        assert!(seen < 8, "all at once");
        assert!(begun.elapsed() > 200 * MILLI, "{:?}: they owed 250 ms before the first", begun.elapsed());
        let first = Arc::clone(&lanes.share.first).acquire_owned().await.expect("it is open");
        lanes.share.step(Instant::now(), || spin(20 * MILLI));
        tokio::time::timeout(5 * IN_LINE_MAX, Paced::new(async {}, &connection)).await.expect("it went on");
        drop(first);
    }

    #[tokio::test]
    async fn nothing_is_held_awake_outside() {
        assert!(hold_awake().0.is_none());
    }

    #[tokio::test]
    async fn whoever_owes_waits_until_it_has_paid_and_not_beyond_its_deadline() {
        let (_turns, connection) = connection(true);
        let lanes = connection.lanes();
        lanes.share.spend(20 * MILLI);
        let begun = Instant::now();
        paid(&lanes, begun + Duration::from_secs(10)).await;
        let took = begun.elapsed();
        assert!(took > 50 * MILLI && took < Duration::from_secs(5), "{took:?}");
        lanes.share.spend(Duration::from_secs(1));
        let begun = Instant::now();
        paid(&lanes, begun + 30 * MILLI).await;
        assert!(begun.elapsed() >= 30 * MILLI && begun.elapsed() < Duration::from_secs(1));
    }
}
