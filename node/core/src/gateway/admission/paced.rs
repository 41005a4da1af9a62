//! Work that takes no more of the processors than its account may.
//!
//! Owns when a connection, and what runs beside it, is polled, and how long a request waits before more is begun for it elsewhere. What holds
//! a place that others wait for is never held up: see [`hold_awake`]. Never decides how much an account may take: [`super::pace`] does.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;
use quorate_threads::watchdog;
use tokio::time::Sleep;

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

/// One that waits until its account has paid, until it is dropped.
struct Pause {
    sleep: Pin<Box<Sleep>>,
    lanes: Arc<Lanes>,
}

impl Pause {
    fn begin(lanes: &Arc<Lanes>, until: Instant) -> Self {
        lanes.share.paused.fetch_add(1, Ordering::Relaxed);
        Self { sleep: Box::pin(tokio::time::sleep_until(until.into())), lanes: Arc::clone(lanes) }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.lanes.share.paused.fetch_sub(1, Ordering::Relaxed);
    }
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
        while this.account.is_paced && this.held.load(Ordering::Relaxed) == 0 {
            // One that waits goes on waiting, whatever woke it up.
            if let Some(pause) = this.pause {
                std::task::ready!(pause.sleep.as_mut().poll(cx));
                (*this.pause, now) = (None, Instant::now());
            }
            if this.account.has_changed(this.lanes.0) {
                *this.lanes = this.account.lanes_now();
            }
            let Some(until) = this.lanes.1.share.pause(now) else { break };
            *this.pause = Some(Pause::begin(&this.lanes.1, until));
        }
        *this.pause = None;
        let outer = HELD.replace(Some(Arc::clone(this.held)));
        let polled = this.lanes.1.share.step(now, || watchdog::step("connection", || this.connection.poll(cx)));
        HELD.set(outer);
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
    use std::time::Duration;

    use super::*;
    use crate::gateway::admission::turns::Turns;

    const MILLI: Duration = Duration::from_millis(1);

    fn connection(is_paced: bool) -> (Arc<Turns>, Arc<ConnectionAccount>) {
        let turns = Arc::new(Turns::default());
        turns.pace.have_late(2);
        let connection = ConnectionAccount::new(&turns, IpAddr::V4(Ipv4Addr::LOCALHOST).into(), is_paced);
        (turns, connection)
    }

    /// How long a future takes each of whose ten steps takes 5 ms of a processor.
    async fn took(is_paced: bool, hold: bool) -> Duration {
        let (_turns, connection) = connection(is_paced);
        let (mut rounds, mut held) = (0, None);
        let busy = std::future::poll_fn(move |cx| {
            let begun = watchdog::processor_time();
            while watchdog::processor_time() - begun < 5 * MILLI {}
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
