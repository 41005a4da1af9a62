//! The processors between addresses: while requests come faster than the threads that serve them can take, the connections of an address
//! get no more of these threads than those of any other.
//!
//! Owns how long the connections of each address were at work of late, and how long they may be. What a connection costs before its
//! request is known (a head, a body, frames) counts like the rest. Where nothing is late, or one address alone asks, nobody
//! is held up. Never knows what a connection does.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use quorate_store::background;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use crate::watchdog;

/// How long a share of the threads is counted.
const WINDOW: Duration = Duration::from_millis(10);
const WINDOW_NANOS: u64 = WINDOW.as_nanos() as u64;

/// From one look to the next where nobody can be held up.
const SELDOM: Duration = Duration::from_millis(100);

/// Later than that, and everybody waits for the threads.
const LATE: Duration = Duration::from_micros(2_500);

/// All addresses together have at least one part in so many of the threads' time, however late it is; the rest is for the log, other nodes
/// and who asks for little. Under floods of cheap requests honest writes took 56 ms at a half of it, 40 ms at a quarter; those of all together hardly
/// changed (`scripts/abuse parameters puts`).
const LEAST_PART: u64 = 4;

/// So many of an address go on in one window after a pause, and none is put off by more windows than that: all at once would do
/// little but wake up and wait again.
const WAKE_IN_WINDOW: usize = 64;
const WINDOWS_MAX: usize = 100;

/// No bound.
const FREE: u64 = u64::MAX;

/// The share that each address may take at the moment.
#[derive(Debug)]
pub struct Pace {
    born: Instant,
    /// Nanoseconds of work in each window; [`FREE`] where nobody is held up.
    most: AtomicU64,
    /// Counts the looks at it.
    look: AtomicU64,
    /// Addresses that were at work since the last look.
    at_work: AtomicUsize,
}

/// What the connections of one address take.
#[derive(Debug)]
pub struct Share {
    pace: Arc<Pace>,
    /// The window that `spent` is about.
    window: AtomicU64,
    /// Nanoseconds.
    spent: AtomicU64,
    /// The look before which it was last at work.
    look: AtomicU64,
    /// Connections, and what belongs to them, that wait for another window.
    paused: AtomicUsize,
}

impl Pace {
    /// Nobody is held up.
    pub fn new() -> Arc<Self> {
        let (most, look) = (AtomicU64::new(FREE), AtomicU64::new(1));
        Arc::new(Self { born: Instant::now(), most, look, at_work: AtomicUsize::new(0) })
    }

    /// That of an address.
    pub fn share(self: &Arc<Self>) -> Arc<Share> {
        let [window, spent, look] = Default::default();
        Arc::new(Share { pace: Arc::clone(self), window, spent, look, paused: AtomicUsize::new(0) })
    }

    fn window(&self) -> u64 {
        // A node does not run for centuries. The first one is 1, so that a new share is in none.
        self.born.elapsed().as_nanos() as u64 / WINDOW_NANOS + 1
    }

    /// Looks again and again how late the threads are, until the port stops. In a simulation nothing takes time.
    pub async fn watch(self: Arc<Self>, threads: usize, stop: CancellationToken) {
        if background::is_simulated() {
            return;
        }
        let mut addresses = 0;
        while !stop.is_cancelled() {
            let due = Instant::now() + if addresses > 1 { WINDOW } else { SELDOM };
            tokio::time::sleep_until(due.into()).await;
            self.look.fetch_add(1, Ordering::Relaxed);
            addresses = self.at_work.swap(0, Ordering::Relaxed);
            self.adjust(due.elapsed(), addresses, threads);
        }
    }

    /// Less for each address where all are late, and more where they are not; never less than an equal part of one in [`LEAST_PART`].
    fn adjust(&self, late: Duration, addresses: usize, threads: usize) {
        let before = self.most.load(Ordering::Relaxed);
        let all = WINDOW_NANOS * threads as u64;
        let after = match addresses {
            0 | 1 => FREE,
            _ if late > LATE => (before.min(all) / 2).max(all / LEAST_PART / addresses as u64),
            _ if before >= all => FREE,
            _ => before + before / 8 + 1,
        };
        self.most.store(after, Ordering::Relaxed);
    }
}

impl Share {
    /// Counts work that was done.
    fn spend(&self, took: Duration) {
        let now = self.pace.window();
        if self.window.swap(now, Ordering::Relaxed) != now {
            self.spent.store(0, Ordering::Relaxed);
            let look = self.pace.look.load(Ordering::Relaxed);
            if self.look.swap(look, Ordering::Relaxed) != look {
                self.pace.at_work.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.spent.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Until when one more has to wait, behind those that wait already; nothing where there is something left of the share.
    fn pause(&self) -> Option<Instant> {
        let most = self.pace.most.load(Ordering::Relaxed);
        if most == FREE || self.spent.load(Ordering::Relaxed) < most {
            return None;
        }
        let window = self.window.load(Ordering::Relaxed);
        let later = (self.paused.load(Ordering::Relaxed) / WAKE_IN_WINDOW).min(WINDOWS_MAX) as u64;
        let end = || self.pace.born + WINDOW * u32::try_from(window + later).unwrap_or(u32::MAX);
        (self.pace.window() == window).then(end)
    }
}

pin_project! {
    /// A connection that takes no more than its share.
    pub struct Paced<F> {
        #[pin]
        connection: F,
        share: Arc<Share>,
        pause: Option<Pause>,
    }
}

/// One that waits for another window, until it is dropped.
struct Pause {
    sleep: Pin<Box<Sleep>>,
    share: Arc<Share>,
}

impl Pause {
    fn begin(share: &Arc<Share>, until: Instant) -> Self {
        share.paused.fetch_add(1, Ordering::Relaxed);
        Self { sleep: Box::pin(tokio::time::sleep_until(until.into())), share: Arc::clone(share) }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.share.paused.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<F> Paced<F> {
    /// Counts what this one does.
    pub fn new(connection: F, share: &Arc<Share>) -> Self {
        Self { connection, share: Arc::clone(share), pause: None }
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
        loop {
            // One that waits goes on waiting, whatever woke it up.
            if let Some(pause) = this.pause {
                std::task::ready!(pause.sleep.as_mut().poll(cx));
                *this.pause = None;
            }
            let Some(until) = this.share.pause() else { break };
            *this.pause = Some(Pause::begin(this.share, until));
        }
        let begun = Instant::now();
        let polled = watchdog::step("connection", || this.connection.poll(cx));
        this.share.spend(begun.elapsed());
        polled
    }
}

/// Has what belongs to a connection, and runs beside it, take from the same share.
#[derive(Clone)]
pub struct PacedExecutor(pub Arc<Share>);

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for PacedExecutor {
    fn execute(&self, future: F) {
        tokio::spawn(Paced::new(future, &self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn one_address_alone_is_never_held_up() {
        let pace = Pace::new();
        pace.adjust(Duration::from_secs(1), 1, 2);
        let share = pace.share();
        share.spend(Duration::from_secs(1));
        assert_eq!(share.pause(), None);
    }

    #[test]
    fn who_took_more_than_its_share_waits_for_the_next_window_and_others_do_not() {
        let pace = Pace::new();
        for _ in 0..100 {
            pace.adjust(10 * MILLI, 5, 1);
        }
        assert_eq!(
            pace.most.load(Ordering::Relaxed),
            WINDOW_NANOS / 20,
            "a fifth of a quarter of the time, and no less"
        );
        let (greedy, modest) = (pace.share(), pace.share());
        let until = loop {
            greedy.spend(2 * MILLI);
            modest.spend(MILLI / 4);
            assert!(modest.pause().is_none() || modest.spent.load(Ordering::Relaxed) >= WINDOW_NANOS / 20);
            // A window may have ended in between.
            if let Some(until) = greedy.pause() {
                break until;
            }
        };
        assert!(until <= Instant::now() + WINDOW);
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        assert_eq!(greedy.pause(), None, "the next window");
    }

    #[test]
    fn many_that_wait_do_not_all_go_on_at_once() {
        let pace = Pace::new();
        for _ in 0..100 {
            pace.adjust(10 * MILLI, 5, 1);
        }
        let share = pace.share();
        let pause = || loop {
            share.spend(MILLI);
            // A window may have ended in between.
            if let Some(until) = share.pause() {
                return until.saturating_duration_since(Instant::now());
            }
        };
        assert!(pause() <= WINDOW);
        share.paused.store(10 * WAKE_IN_WINDOW, Ordering::Relaxed);
        let put_off = pause();
        assert!(put_off > 9 * WINDOW && put_off <= 11 * WINDOW, "{put_off:?}");
        share.paused.store(usize::MAX, Ordering::Relaxed);
        assert!(pause() <= WINDOW * (WINDOWS_MAX as u32 + 1));
    }

    #[test]
    fn shares_grow_while_nothing_is_late_until_they_bound_nobody() {
        let pace = Pace::new();
        pace.adjust(10 * MILLI, 2, 4);
        assert_ne!(pace.most.load(Ordering::Relaxed), FREE);
        (0..100).for_each(|_| pace.adjust(Duration::ZERO, 2, 4));
        assert_eq!(pace.most.load(Ordering::Relaxed), FREE);
    }

    #[tokio::test]
    async fn a_paced_future_comes_to_its_end() {
        let pace = Pace::new();
        for _ in 0..100 {
            pace.adjust(10 * MILLI, 2, 1);
        }
        let share = pace.share();
        let mut rounds = 0;
        let busy = std::future::poll_fn(|cx| {
            std::thread::sleep(3 * MILLI);
            rounds += 1;
            cx.waker().wake_by_ref();
            if rounds < 10 { Poll::Pending } else { Poll::Ready(()) }
        });
        let begun = Instant::now();
        Paced::new(busy, &share).await;
        assert!(begun.elapsed() > 40 * MILLI, "it was held up: {:?}", begun.elapsed());
    }
}
