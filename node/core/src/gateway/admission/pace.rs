//! The processors between accounts: while requests come faster than the threads that serve them can take, an account gets no more of the
//! processors than any other.
//!
//! Owns how much time of the processors was taken on behalf of each account of late, and how much may be. An account is an address until a
//! connection has shown whose it is. What a connection costs before its request is known (a head, a body, frames) counts like the rest, and
//! so does what is done elsewhere for a request. An account that took more than its share owes the rest: its connections wait until that much
//! time has come back. Where nothing is late nobody is held up; where one account alone asks, only until the queue of the threads has come
//! round. Never knows what a connection does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use quorate_threads::{background, watchdog};
use tokio_util::sync::CancellationToken;

/// The time in which every account may take its share, and which it may take at once after a pause.
const WINDOW: Duration = Duration::from_millis(10);
const WINDOW_NANOS: u64 = WINDOW.as_nanos() as u64;

/// No account owes for longer: one dear request must not lock it out.
const DEBT_MAX: Duration = Duration::from_secs(1);

/// From one look to the next where one account alone asks.
const SELDOM: Duration = Duration::from_millis(20);

/// From one look to the next where nobody asks.
const IDLE: Duration = Duration::from_millis(50);

/// A look that is due for that long waits behind a crowd, and so does every heartbeat: whoever has had its share is held up until the look
/// comes, even where one account alone asks. A thousand connections with two hundred streams each filled the queue of a thread for a
/// second before the first look.
const OVERDUE: Duration = Duration::from_millis(30);

/// Later than that, and everybody waits for the threads.
const LATE: Duration = Duration::from_micros(2_500);

/// All accounts together have at least one part in so many of the threads' time, however late it is; the rest is for the log, other nodes
/// and who asks for little. Under floods of cheap requests honest writes took 56 ms at a half of it, 40 ms at a quarter; those of all together hardly
/// changed (`scripts/abuse parameters puts`).
const LEAST_PART: u64 = 4;

/// So many connections of an account go on in one window, and none is put off by more windows than that: all at once would do
/// little but wake up and wait again.
const WAKE_IN_WINDOW: usize = 64;
const WINDOWS_MAX: usize = 100;

/// No bound.
const FREE: u64 = u64::MAX;

/// The share that each account may take at the moment.
#[derive(Debug)]
pub struct Pace {
    born: Instant,
    /// Nanoseconds of the processors in each window; [`FREE`] where nobody is held up.
    most: AtomicU64,
    /// When the next look is due, in nanoseconds since `born`; never before the first.
    due: AtomicU64,
    /// Nanoseconds that all threads have in a window.
    all: AtomicU64,
    /// How late other runtimes were since the last look, in nanoseconds.
    late_elsewhere: AtomicU64,
    /// Counts the looks at it.
    look: AtomicU64,
    /// Accounts that were at work since the last look.
    at_work: AtomicUsize,
}

/// What one account takes.
#[derive(Debug)]
pub struct Share {
    pace: Arc<Pace>,
    /// When all that it took will have come back, in nanoseconds since `born` of the pace.
    paid_at: AtomicU64,
    /// The look before which it was last at work.
    look: AtomicU64,
    /// Connections, and what belongs to them, that wait until it has paid.
    pub paused: AtomicUsize,
}

impl Pace {
    /// Nobody is held up.
    pub fn new() -> Arc<Self> {
        let [most, due] = [FREE, u64::MAX].map(AtomicU64::new);
        let (all, look, at_work) = (AtomicU64::new(WINDOW_NANOS), AtomicU64::new(1), AtomicUsize::new(0));
        let late_elsewhere = AtomicU64::new(0);
        Arc::new(Self { born: Instant::now(), most, due, all, late_elsewhere, look, at_work })
    }

    /// That of an account.
    pub fn share(self: &Arc<Self>) -> Share {
        let [paid_at, look] = Default::default();
        Share { pace: Arc::clone(self), paid_at, look, paused: AtomicUsize::new(0) }
    }

    /// Nanoseconds since it was made. A node does not run for centuries.
    fn nanos(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.born).as_nanos() as u64
    }

    /// Looks again and again how late the threads are, until the port stops. In a simulation nothing takes time.
    pub async fn watch(self: Arc<Self>, threads: usize, stop: CancellationToken) {
        if background::is_simulated() {
            return;
        }
        self.all.store(WINDOW_NANOS * threads as u64, Ordering::Relaxed);
        let mut accounts = 0;
        while !stop.is_cancelled() {
            let due = Instant::now() + pause_after(accounts);
            self.due.store(self.nanos(due), Ordering::Relaxed);
            tokio::time::sleep_until(due.into()).await;
            self.look.fetch_add(1, Ordering::Relaxed);
            accounts = self.at_work.swap(0, Ordering::Relaxed);
            let elsewhere = Duration::from_nanos(self.late_elsewhere.swap(0, Ordering::Relaxed));
            self.adjust(due.elapsed().max(elsewhere), accounts);
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

    /// Less for each account where all are late, and more where they are not; never less than the least.
    fn adjust(&self, late: Duration, accounts: usize) {
        let (before, all) = (self.most.load(Ordering::Relaxed), self.all.load(Ordering::Relaxed));
        let after = match accounts {
            0 | 1 => FREE,
            _ if late > LATE => (before.min(all) / 2).max(self.least(accounts)),
            _ if before >= all => FREE,
            _ => before + before / 8 + 1,
        };
        self.most.store(after, Ordering::Relaxed);
    }

    /// An equal part of one in [`LEAST_PART`].
    fn least(&self, accounts: usize) -> u64 {
        self.all.load(Ordering::Relaxed) / LEAST_PART / accounts.max(1) as u64
    }

    /// What each account may take now in a window.
    fn most(&self, now: Instant) -> u64 {
        let most = self.most.load(Ordering::Relaxed);
        let overdue = self.due.load(Ordering::Relaxed).saturating_add(OVERDUE.as_nanos() as u64);
        if self.nanos(now) < overdue { most } else { most.min(self.least(self.at_work.load(Ordering::Relaxed))) }
    }
}

/// From one look to the next, with so many accounts at work.
fn pause_after(accounts: usize) -> Duration {
    match accounts {
        0 => IDLE,
        1 => SELDOM,
        _ => WINDOW,
    }
}

impl Share {
    /// Notes that it is at work.
    pub fn note(&self) {
        let look = self.pace.look.load(Ordering::Relaxed);
        if self.look.load(Ordering::Relaxed) != look && self.look.swap(look, Ordering::Relaxed) != look {
            self.pace.at_work.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Does work on behalf of this account, wherever that is done, and counts it.
    pub fn at_work<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.pace.most(Instant::now()) == FREE {
            return work();
        }
        let begun = watchdog::processor_time();
        let done = work();
        self.spend(watchdog::processor_time().saturating_sub(begun));
        done
    }

    /// Counts time of the processors that was taken for it. Where nobody is held up nothing is owed.
    pub fn spend(&self, took: Duration) {
        let now = Instant::now();
        let most = self.pace.most(now);
        if most == FREE {
            return;
        }
        let now = self.pace.nanos(now);
        let price = u128::from(WINDOW_NANOS) * took.as_nanos() / u128::from(most.max(1));
        let price = u64::try_from(price).unwrap_or(u64::MAX);
        let latest = now + DEBT_MAX.as_nanos() as u64;
        let paid_after =
            |paid_at: u64| Some(paid_at.max(now.saturating_sub(WINDOW_NANOS)).saturating_add(price).min(latest));
        let _always = self.paid_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, paid_after);
    }

    /// Whether more was taken than has come back.
    pub fn owes(&self) -> bool {
        self.paid_at.load(Ordering::Relaxed) > self.pace.nanos(Instant::now())
    }

    /// Until when one more has to wait, behind those that wait already; nothing where there is something left of the share.
    pub fn pause(&self, now: Instant) -> Option<Instant> {
        let paid_at = self.paid_at.load(Ordering::Relaxed);
        if paid_at <= self.pace.nanos(now) || self.pace.most(now) == FREE {
            return None;
        }
        let later = (self.paused.load(Ordering::Relaxed) / WAKE_IN_WINDOW).min(WINDOWS_MAX);
        // Both are small.
        Some(self.pace.born + Duration::from_nanos(paid_at) + WINDOW * u32::try_from(later).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    impl Pace {
        /// Makes it one that was late for long, with so many accounts.
        pub fn have_late(&self, accounts: usize) {
            (0..100).for_each(|_| self.adjust(10 * MILLI, accounts));
        }
    }

    fn late(accounts: usize) -> Arc<Pace> {
        let pace = Pace::new();
        pace.have_late(accounts);
        // Nobody saves up what came before there was a pace.
        std::thread::sleep(WINDOW);
        pace
    }

    /// How much longer it has to wait.
    fn pause(share: &Share) -> Option<Duration> {
        let now = Instant::now();
        share.pause(now).map(|until| until.saturating_duration_since(now))
    }

    #[test]
    fn one_account_alone_is_not_held_up_where_all_is_late() {
        let share = late(1).share();
        share.spend(Duration::from_secs(1));
        assert_eq!(pause(&share), None);
        assert!(!share.owes());
    }

    #[test]
    fn while_a_look_is_overdue_whoever_had_its_share_is_held_up_and_nobody_else() {
        let pace = Pace::new();
        let (greedy, modest) = (pace.share(), pace.share());
        pace.due.store(pace.nanos(Instant::now() + 1_000 * MILLI), Ordering::Relaxed);
        greedy.spend(10 * MILLI);
        assert_eq!(pause(&greedy), None, "it is not due yet");
        pace.due.store(0, Ordering::Relaxed);
        std::thread::sleep(OVERDUE);
        greedy.spend(10 * MILLI);
        // One account counts as at work, with a share of 2.5 ms.
        assert!(pause(&greedy).is_some_and(|pause| pause > 20 * MILLI && pause <= 30 * MILLI));
        modest.spend(2 * MILLI);
        assert_eq!(pause(&modest), None);
    }

    #[test]
    fn who_took_more_than_its_share_waits_until_it_has_paid_and_others_do_not() {
        let pace = late(5);
        let least = Duration::from_nanos(pace.most.load(Ordering::Relaxed));
        assert_eq!(least, WINDOW / 20, "a fifth of a quarter of the time, and no less");
        let (greedy, modest) = (pace.share(), pace.share());
        greedy.spend(3 * least);
        modest.spend(least / 2);
        assert_eq!(pause(&modest), None);
        // It had a share at once, and owes two.
        assert!(pause(&greedy).is_some_and(|pause| pause > WINDOW && pause <= 2 * WINDOW));
        std::thread::sleep(2 * WINDOW);
        assert_eq!(pause(&greedy), None, "it has paid");
    }

    #[test]
    fn nobody_owes_for_longer_than_a_bound_and_what_comes_while_it_owes_adds_up() {
        let share = late(5).share();
        let mut before = Duration::ZERO;
        for _ in 0..4 {
            share.spend(2 * MILLI);
            let now = pause(&share).expect("it owes");
            assert!(now > before + 2 * WINDOW, "{now:?} after {before:?}");
            before = now;
        }
        share.spend(Duration::from_secs(1_000));
        assert!(pause(&share).is_some_and(|pause| pause <= DEBT_MAX));
    }

    #[test]
    fn many_that_wait_do_not_all_go_on_at_once() {
        let share = late(5).share();
        share.spend(Duration::from_secs(1_000));
        share.paused.store(10 * WAKE_IN_WINDOW, Ordering::Relaxed);
        assert!(pause(&share).is_some_and(|pause| pause > DEBT_MAX && pause <= DEBT_MAX + 10 * WINDOW));
        share.paused.store(usize::MAX, Ordering::Relaxed);
        assert!(pause(&share).is_some_and(|pause| pause <= DEBT_MAX + WINDOW * WINDOWS_MAX as u32));
    }

    #[test]
    fn work_is_counted_by_the_time_of_the_processors_that_it_takes() {
        let share = late(5).share();
        share.at_work(|| std::thread::sleep(20 * MILLI));
        assert_eq!(pause(&share), None, "to wait takes none");
        let spin = || {
            let begun = watchdog::processor_time();
            while watchdog::processor_time() - begun < 2 * MILLI {}
        };
        share.at_work(spin);
        assert!(pause(&share).is_some_and(|pause| pause > 2 * WINDOW), "four shares");
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
}
