//! The processors between addresses: while requests come faster than the threads that serve them can take, the connections of an address
//! get no more of these threads than those of any other.
//!
//! Owns how long the connections of each address were at work of late, and how long they may be. What a connection costs before its
//! request is known (a head, a body, frames) counts like the rest. Where nothing is late nobody is held up; where one address alone
//! asks, only until the queue of the threads has come round. Never knows what a connection does.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use quorate_threads::{background, watchdog};
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

/// How long a share of the threads is counted.
const WINDOW: Duration = Duration::from_millis(10);
const WINDOW_NANOS: u64 = WINDOW.as_nanos() as u64;

/// From one look to the next where one address alone asks.
const SELDOM: Duration = Duration::from_millis(20);

/// From one look to the next where nobody asks.
const IDLE: Duration = Duration::from_millis(50);

/// A look that is due for that long waits behind a crowd, and so does every heartbeat: whoever has had its share is held up until the look
/// comes, even where one address alone asks. A thousand connections with two hundred streams each filled the queue of a thread for a
/// second before the first look.
const OVERDUE: Duration = Duration::from_millis(30);

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
    /// When the next look is due, in nanoseconds since `born`; never before the first.
    due: AtomicU64,
    /// Nanoseconds that all threads have in a window.
    all: AtomicU64,
    /// How late other runtimes were since the last look, in nanoseconds.
    late_elsewhere: AtomicU64,
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
        let [most, due] = [FREE, u64::MAX].map(AtomicU64::new);
        let (all, look, at_work) = (AtomicU64::new(WINDOW_NANOS), AtomicU64::new(1), AtomicUsize::new(0));
        let late_elsewhere = AtomicU64::new(0);
        Arc::new(Self { born: Instant::now(), most, due, all, late_elsewhere, look, at_work })
    }

    /// That of an address.
    pub fn share(self: &Arc<Self>) -> Arc<Share> {
        let [window, spent, look] = Default::default();
        Arc::new(Share { pace: Arc::clone(self), window, spent, look, paused: AtomicUsize::new(0) })
    }

    /// Nanoseconds since it was made. A node does not run for centuries.
    fn nanos(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.born).as_nanos() as u64
    }

    /// The first one is 1, so that a new share is in none.
    fn window(&self, now: Instant) -> u64 {
        self.nanos(now) / WINDOW_NANOS + 1
    }

    /// Looks again and again how late the threads are, until the port stops. In a simulation nothing takes time.
    pub async fn watch(self: Arc<Self>, threads: usize, stop: CancellationToken) {
        if background::is_simulated() {
            return;
        }
        self.all.store(WINDOW_NANOS * threads as u64, Ordering::Relaxed);
        let mut addresses = 0;
        while !stop.is_cancelled() {
            let due = Instant::now() + pause_after(addresses);
            self.due.store(self.nanos(due), Ordering::Relaxed);
            tokio::time::sleep_until(due.into()).await;
            self.look.fetch_add(1, Ordering::Relaxed);
            addresses = self.at_work.swap(0, Ordering::Relaxed);
            let elsewhere = Duration::from_nanos(self.late_elsewhere.swap(0, Ordering::Relaxed));
            self.adjust(due.elapsed().max(elsewhere), addresses);
        }
        // No other look is due.
        self.due.store(u64::MAX, Ordering::Relaxed);
    }

    /// Feels how late the threads of another runtime are that serves connections, too, for [`Self::watch`].
    pub async fn feel(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let due = Instant::now() + pause_after(self.at_work.load(Ordering::Relaxed));
            tokio::time::sleep_until(due.into()).await;
            self.late_elsewhere.fetch_max(due.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// Less for each address where all are late, and more where they are not; never less than the least.
    fn adjust(&self, late: Duration, addresses: usize) {
        let (before, all) = (self.most.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed));
        let after = match addresses {
            0 | 1 => FREE,
            _ if late > LATE => (before.min(all) / 2).max(self.least(addresses)),
            _ if before >= all => FREE,
            _ => before + before / 8 + 1,
        };
        self.most.store(after, Ordering::Relaxed);
    }

    /// An equal part of one in [`LEAST_PART`].
    fn least(&self, addresses: usize) -> u64 {
        self.all.load(Ordering::Relaxed) / LEAST_PART / addresses.max(1) as u64
    }

    /// What each address may take now.
    fn most(&self, now: Instant) -> u64 {
        let most = self.most.load(Ordering::Relaxed);
        let overdue = self.due.load(Ordering::Relaxed).saturating_add(OVERDUE.as_nanos() as u64);
        if self.nanos(now) < overdue { most } else { most.min(self.least(self.at_work.load(Ordering::Relaxed))) }
    }
}

/// From one look to the next, with so many addresses at work.
fn pause_after(addresses: usize) -> Duration {
    match addresses {
        0 => IDLE,
        1 => SELDOM,
        _ => WINDOW,
    }
}

impl Share {
    /// Counts work that was done from `begun` on.
    fn spend(&self, begun: Instant) {
        let end = Instant::now();
        let (now, took) = (self.pace.window(end), end.saturating_duration_since(begun));
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
    fn pause(&self, now: Instant) -> Option<Instant> {
        let most = self.pace.most(now);
        if most == FREE || self.spent.load(Ordering::Relaxed) < most {
            return None;
        }
        let window = self.window.load(Ordering::Relaxed);
        let later = (self.paused.load(Ordering::Relaxed) / WAKE_IN_WINDOW).min(WINDOWS_MAX) as u64;
        let end = || self.pace.born + WINDOW * u32::try_from(window + later).unwrap_or(u32::MAX);
        (self.pace.window(now) == window).then(end)
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
        let begun = loop {
            // One that waits goes on waiting, whatever woke it up.
            if let Some(pause) = this.pause {
                std::task::ready!(pause.sleep.as_mut().poll(cx));
                *this.pause = None;
            }
            let now = Instant::now();
            let Some(until) = this.share.pause(now) else { break now };
            *this.pause = Some(Pause::begin(this.share, until));
        };
        let polled = watchdog::step("connection", || this.connection.poll(cx));
        this.share.spend(begun);
        polled
    }
}

/// Has what belongs to a connection, and runs beside it, take from the same share.
#[derive(Clone)]
pub struct PacedExecutor(pub Arc<Share>);

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for PacedExecutor {
    fn execute(&self, future: F) {
        watchdog::spawn(Paced::new(future, &self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    impl Share {
        /// It has been at work for so long.
        fn work(&self, took: Duration) {
            self.spend(Instant::now() - took);
        }

        /// Until when it is held up after it has been at work for that long again and again.
        fn held_up_by(&self, took: Duration) -> Instant {
            loop {
                self.work(took);
                // A window may have ended in between.
                if let Some(until) = self.pause(Instant::now()) {
                    return until;
                }
            }
        }
    }

    /// One that was late for long, with so many addresses.
    fn late(addresses: usize) -> Arc<Pace> {
        let pace = Pace::new();
        (0..100).for_each(|_| pace.adjust(10 * MILLI, addresses));
        pace
    }

    #[test]
    fn one_address_alone_is_not_held_up_where_all_is_late() {
        let pace = late(1);
        let share = pace.share();
        share.work(Duration::from_secs(1));
        assert_eq!(share.pause(Instant::now()), None);
    }

    #[test]
    fn while_a_look_is_overdue_whoever_had_its_share_is_held_up_and_nobody_else() {
        let pace = Pace::new();
        let (greedy, modest) = (pace.share(), pace.share());
        pace.due.store(pace.nanos(Instant::now() + 1_000 * MILLI), Ordering::Relaxed);
        greedy.work(10 * MILLI);
        assert_eq!(greedy.pause(Instant::now()), None, "it is not due yet");
        pace.due.store(0, Ordering::Relaxed);
        std::thread::sleep(OVERDUE);
        assert!(greedy.held_up_by(3 * MILLI) <= Instant::now() + WINDOW);
        modest.work(MILLI);
        assert_eq!(modest.pause(Instant::now()), None, "of 1.25 ms for each of two");
    }

    #[test]
    fn who_took_more_than_its_share_waits_for_the_next_window_and_others_do_not() {
        let pace = late(5);
        assert_eq!(
            pace.most.load(Ordering::Relaxed),
            WINDOW_NANOS / 20,
            "a fifth of a quarter of the time, and no less"
        );
        let (greedy, modest) = (pace.share(), pace.share());
        let until = loop {
            greedy.work(2 * MILLI);
            modest.work(MILLI / 4);
            assert!(
                modest.pause(Instant::now()).is_none() || modest.spent.load(Ordering::Relaxed) >= WINDOW_NANOS / 20
            );
            if let Some(until) = greedy.pause(Instant::now()) {
                break until;
            }
        };
        assert!(until <= Instant::now() + WINDOW);
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        assert_eq!(greedy.pause(Instant::now()), None, "the next window");
    }

    #[test]
    fn many_that_wait_do_not_all_go_on_at_once() {
        let pace = late(5);
        let share = pace.share();
        let pause = || share.held_up_by(MILLI).saturating_duration_since(Instant::now());
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
        pace.adjust(10 * MILLI, 2);
        assert_ne!(pace.most.load(Ordering::Relaxed), FREE);
        (0..100).for_each(|_| pace.adjust(Duration::ZERO, 2));
        assert_eq!(pace.most.load(Ordering::Relaxed), FREE);
    }

    #[tokio::test]
    async fn it_is_felt_how_late_another_thread_is() {
        let pace = Pace::new();
        tokio::spawn(Arc::clone(&pace).feel(CancellationToken::new()));
        // It begins to wait, and nobody polls it in time.
        tokio::task::yield_now().await;
        std::thread::sleep(IDLE + 20 * MILLI);
        while pace.late_elsewhere.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let late = Duration::from_nanos(pace.late_elsewhere.load(Ordering::Relaxed));
        assert!(late >= 10 * MILLI, "{late:?}");
    }

    #[tokio::test]
    async fn a_paced_future_comes_to_its_end() {
        let share = late(2).share();
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
