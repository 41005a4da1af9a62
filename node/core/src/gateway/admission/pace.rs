//! The processors between accounts: while requests come faster than the threads that serve them can take, an account gets no more of the
//! processors than any other.
//!
//! Owns how much time of the processors was taken on behalf of each account of late, and how much may be. The cost of a connection before its
//! request is known (a head, a body, frames) counts like the rest, and so does what is done elsewhere for a request: scans, and the apply of
//! commands. An account that took more than its share owes the rest. Its connections wait until what they took themselves has come back;
//! no more work is begun elsewhere for it until all has. Nobody is held up while nothing is late; an account that alone asks, only until the
//! queue of the threads has come round. Tells operators which accounts owe. Never knows what the work is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use quorate_api::{NodeResource, NodeResourceKind};
use quorate_threads::{background, watchdog};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::alive_table::AliveTable;
use crate::gateway::admission::accounts::Account;
use crate::gateway::admission::refusals::{Amounts, Held, Met, Refusals};

/// The time in which every account may take its share.
const WINDOW: Duration = Duration::from_millis(10);
const WINDOW_NANOS: u64 = WINDOW.as_nanos() as u64;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// Time that an account which asks for little may take at once after a pause, however many accounts there are.
const AT_ONCE: Duration = Duration::from_millis(1);

/// No connection waits for longer for what connections took. A session may hang on it.
const WAIT_MAX: Duration = Duration::from_millis(250);

/// No account owes for longer: one dear request must not lock it out.
const DEBT_MAX: Duration = Duration::from_secs(1);

/// A wait is looked at again after this time: there may be more time for each account by then.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// For how long it counts how many accounts were at work at once. One that waits is seen seldom.
const COUNTED: Duration = Duration::from_millis(500);

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
/// and who asks for little. Near saturation honest writes kept 44 to 53 % beside one account or two that repeat cheap requests with a quarter of it,
/// and 53 to 59 % with an eighth (`scripts/abuse 'generated:HTTP/1.1, repeated'`).
const LEAST_PART: u64 = 8;

/// The words of the log about an account that is held up.
const HELD_UP: &str = "the threads of this node are late, and an account that took more than its share of the processors is held up until it has \
                       paid; amounts are milliseconds until then: see `quorate node callers`";

/// No bound.
const FREE: u64 = u64::MAX;

/// The share that each account may take at the moment.
#[derive(Debug)]
pub struct Pace {
    born: Instant,
    /// Nanoseconds of the processors in each window; [`FREE`] where nobody is held up.
    most: AtomicU64,
    /// Takes the place of `most` once it was fixed; [`FREE`] before.
    fixed: AtomicU64,
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
    /// Connections, what belongs to them, requests, and reads of watches, that wait until their account has paid.
    pub held_up: AtomicUsize,
    /// Counts the requests that waited in vain.
    refusals: Refusals,
    /// The shares of all accounts, for operators.
    shares: AliveTable<Account, Share>,
}

/// The time that one account takes.
#[derive(Debug)]
pub struct Share {
    pace: Arc<Pace>,
    /// The time that its connections took.
    by_connections: Debt,
    /// All that was taken for it.
    in_all: Debt,
    /// The look before which it was last at work.
    look: AtomicU64,
    /// Held by the one of its connections that waits until it has paid. Those behind it wait for that one: all at once would do little but wake
    /// up and wait again.
    pub first_connection: Arc<Semaphore>,
    /// The same of its requests.
    pub first_request: Arc<Semaphore>,
    /// The same of what its watches read on disk.
    pub first_read: Arc<Semaphore>,
}

/// When all that was taken will have come back, in nanoseconds since its pace was born.
#[derive(Debug, Default)]
struct Debt(AtomicU64);

impl Debt {
    /// Adds what takes this long to come back. No more than `saved` is there of what came back before, and nothing lasts longer than `most`.
    fn add(&self, price: u64, now: u64, saved: u64, most: Duration) {
        let latest = now + most.as_nanos() as u64;
        let paid_after = |paid_at: u64| Some(paid_at.max(now.saturating_sub(saved)).saturating_add(price).min(latest));
        let _always = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, paid_after);
    }
}

impl Pace {
    /// Nobody is held up.
    pub fn new() -> Arc<Self> {
        let [most, fixed, due] = [FREE, FREE, u64::MAX].map(AtomicU64::new);
        let (all, look, at_work) = (AtomicU64::new(WINDOW_NANOS), AtomicU64::new(1), AtomicUsize::new(0));
        let (late_elsewhere, held_up) = (AtomicU64::new(0), AtomicUsize::new(0));
        let (refusals, shares) = (Refusals::new(NodeResourceKind::Processors), AliveTable::default());
        // An account that comes first has something saved up, too.
        let born = Instant::now().checked_sub(DEBT_MAX).unwrap_or_else(Instant::now);
        Arc::new(Self { born, most, fixed, due, all, late_elsewhere, look, at_work, held_up, refusals, shares })
    }

    /// Fixes the time that each account may take in a window of 10 ms, however late the threads are, until it is called with `None`. For tests: when an
    /// account is held up is chance otherwise. [`Self::watch`] goes on beside it, and does not change it.
    pub fn fix(&self, share: Option<Duration>) {
        let most = share.map_or(FREE, |share| share.as_nanos() as u64);
        self.fixed.store(most, Ordering::Relaxed);
    }

    /// The share of an account.
    pub fn share(self: &Arc<Self>, of: Account) -> Arc<Share> {
        self.shares.get(of, || {
            let (by_connections, in_all) = Default::default();
            let [first_connection, first_request, first_read] = [(); 3].map(|()| Arc::new(Semaphore::new(1)));
            let (pace, look) = (Arc::clone(self), AtomicU64::new(0));
            Share { pace, by_connections, in_all, look, first_connection, first_request, first_read }
        })
    }

    /// Counts one more that waits until its account has paid, and logs who owes most if nothing was logged in the last seconds.
    pub fn hold_up(&self) {
        self.held_up.fetch_add(1, Ordering::Relaxed);
        self.refusals.log(HELD_UP, || self.held());
    }

    /// Counts a request whose account had not paid at its deadline.
    pub fn refuse(&self) {
        self.refusals.add(Met::Share, || self.held());
    }

    /// Tells which accounts owe most, for operators: in milliseconds until each has paid.
    pub fn told(&self) -> NodeResource {
        let held_up = Some(self.held_up.load(Ordering::Relaxed) as u64);
        let late = Some(self.most(Instant::now()) != FREE);
        NodeResource { held_up, late, ..self.refusals.told(self.held()) }
    }

    /// Milliseconds until each account has paid, a part of one as a whole. They pay at the same time: all together need as long as the last one.
    fn held(&self) -> Held {
        let now = self.nanos(Instant::now());
        let owes = |share: &Share| share.paid_at().saturating_sub(now).div_ceil(NANOS_PER_MILLI) as usize;
        let shares = self.shares.entries().into_iter();
        let accounts: Vec<_> = shares.map(|(account, share)| (account, owes(&share))).collect();
        let taken = accounts.iter().map(|(_, owes)| *owes).max().unwrap_or(0);
        let longest = DEBT_MAX.as_millis() as usize;
        Held { amounts: Amounts { bound: longest, of_one: longest, taken }, accounts }
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
        let (mut accounts, mut since, mut most_since) = (0, Instant::now(), 0);
        while !stop.is_cancelled() {
            let pause = pause_after(accounts);
            let due = Instant::now() + pause;
            self.due.store(self.nanos(due), Ordering::Relaxed);
            // Not until `due`: where a test moves the time of tokio on, that is past for good.
            tokio::time::sleep(pause).await;
            self.look.fetch_add(1, Ordering::Relaxed);
            let seen = self.at_work.swap(0, Ordering::Relaxed);
            most_since = seen.max(most_since);
            if seen >= accounts || since.elapsed() >= COUNTED {
                (accounts, since, most_since) = (seen.max(most_since), Instant::now(), 0);
            }
            let elsewhere = Duration::from_nanos(self.late_elsewhere.swap(0, Ordering::Relaxed));
            self.adjust(due.elapsed().max(elsewhere), accounts);
        }
        // No other look is due, and nobody is held up any more.
        self.due.store(u64::MAX, Ordering::Relaxed);
        self.most.store(FREE, Ordering::Relaxed);
    }

    /// Feels how late the threads of another runtime are that serves connections, too, for [`Self::watch`].
    pub async fn feel(self: Arc<Self>, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let pause = pause_after(self.at_work.load(Ordering::Relaxed));
            let due = Instant::now() + pause;
            tokio::time::sleep(pause).await;
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

    /// The time that each account may take now in a window.
    fn most(&self, now: Instant) -> u64 {
        let fixed = self.fixed.load(Ordering::Relaxed);
        if fixed != FREE {
            return fixed;
        }
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
    /// Notes that it is at work, or would be.
    fn note(&self) {
        let look = self.pace.look.load(Ordering::Relaxed);
        if self.look.load(Ordering::Relaxed) != look && self.look.swap(look, Ordering::Relaxed) != look {
            self.pace.at_work.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Does one step of a connection, and counts it.
    pub fn step<T>(&self, now: Instant, step: impl FnOnce() -> T) -> T {
        self.note();
        if self.pace.most(now) == FREE {
            return step();
        }
        let begun = watchdog::processor_time();
        let done = step();
        let took = watchdog::processor_time().saturating_sub(begun);
        self.add(took, true);
        done
    }

    /// The pace that it is a share of.
    pub fn pace(&self) -> &Arc<Pace> {
        &self.pace
    }

    /// Counts time of the processors that was taken for it elsewhere.
    pub fn spend(&self, took: Duration) {
        self.note();
        self.add(took, false);
    }

    /// Nothing is owed while nobody is held up.
    fn add(&self, took: Duration, by_connection: bool) {
        let now = Instant::now();
        let most = self.pace.most(now);
        if most == FREE {
            return;
        }
        let price_of = |took: Duration| {
            let price = u128::from(WINDOW_NANOS) * took.as_nanos() / u128::from(most.max(1));
            u64::try_from(price).unwrap_or(u64::MAX)
        };
        let (price, now, saved) = (price_of(took), self.pace.nanos(now), price_of(AT_ONCE).max(WINDOW_NANOS));
        self.in_all.add(price, now, saved, DEBT_MAX);
        if by_connection {
            self.by_connections.add(price, now, saved, WAIT_MAX);
        }
    }

    /// Whether more was taken than has come back.
    pub fn owes(&self, now: Instant) -> bool {
        self.in_all.0.load(Ordering::Relaxed) > self.pace.nanos(now)
    }

    /// When all will have come back: the more it owes, the later.
    pub fn paid_at(&self) -> u64 {
        self.in_all.0.load(Ordering::Relaxed)
    }

    /// Until when a connection has to wait before it looks again; nothing where there is something left of the share.
    pub fn pause(&self, now: Instant) -> Option<Instant> {
        self.wait_for(&self.by_connections, now)
    }

    /// The same for what is done elsewhere.
    pub fn pause_elsewhere(&self, now: Instant) -> Option<Instant> {
        self.wait_for(&self.in_all, now)
    }

    fn wait_for(&self, debt: &Debt, now: Instant) -> Option<Instant> {
        let paid_at = debt.0.load(Ordering::Relaxed);
        if paid_at == 0 || paid_at <= self.pace.nanos(now) || self.pace.most(now) == FREE {
            return None;
        }
        self.note();
        Some((self.pace.born + Duration::from_nanos(paid_at)).min(now + LOOK_AGAIN))
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

    fn user(name: &str) -> Account {
        Account::User(name.into())
    }

    fn late(accounts: usize) -> Arc<Pace> {
        let pace = Pace::new();
        pace.have_late(accounts);
        pace
    }

    /// How much longer it owes, where it is held up.
    fn owes(share: &Share) -> Option<Duration> {
        let now = Instant::now();
        let _until = share.pause_elsewhere(now)?;
        let paid_at = Duration::from_nanos(share.in_all.0.load(Ordering::Relaxed));
        Some((share.pace.born + paid_at).saturating_duration_since(now))
    }

    #[test]
    fn one_account_alone_is_not_held_up_where_all_is_late() {
        let share = late(1).share(user("ann"));
        share.spend(Duration::from_secs(1));
        assert_eq!(owes(&share), None);
        assert!(!share.owes(Instant::now()));
    }

    #[test]
    fn while_a_look_is_overdue_whoever_had_its_share_is_held_up_and_nobody_else() {
        let pace = Pace::new();
        let (greedy, modest) = (pace.share(user("greedy")), pace.share(user("modest")));
        pace.due.store(pace.nanos(Instant::now() + 1_000 * MILLI), Ordering::Relaxed);
        greedy.add(10 * MILLI, true);
        assert_eq!(owes(&greedy), None, "it is not due yet");
        pace.due.store(0, Ordering::Relaxed);
        std::thread::sleep(OVERDUE);
        greedy.add(Duration::from_secs(1), true);
        modest.add(AT_ONCE, true);
        assert!(greedy.pause(Instant::now()).is_some());
        assert_eq!(modest.pause(Instant::now()), None);
    }

    #[test]
    fn whoever_took_more_than_its_share_waits_until_it_has_paid_and_others_do_not() {
        let pace = late(5);
        let least = Duration::from_nanos(pace.most.load(Ordering::Relaxed));
        assert_eq!(least, WINDOW / 40, "a fifth of an eighth of the time, and no less");
        let (greedy, modest) = (pace.share(user("greedy")), pace.share(user("modest")));
        greedy.add(20 * least, true);
        modest.add(AT_ONCE, true);
        assert_eq!(owes(&modest), None);
        // It had two shares at once.
        assert!(owes(&greedy).is_some_and(|wait| wait <= 18 * WINDOW));
        std::thread::sleep(18 * WINDOW);
        assert_eq!(owes(&greedy), None, "it has paid");
    }

    #[test]
    fn what_was_done_elsewhere_holds_up_what_is_to_be_done_there_and_no_connection() {
        let share = late(5).share(user("ann"));
        share.spend(Duration::from_secs(1));
        let now = Instant::now();
        assert!(share.pause(now).is_none() && share.pause_elsewhere(now).is_some());
        share.add(Duration::from_secs(1), true);
        assert!(share.pause(Instant::now()).is_some());
    }

    #[test]
    fn nobody_owes_for_longer_than_a_bound_and_what_comes_while_it_owes_adds_up() {
        let share = late(5).share(user("ann"));
        let mut before = Duration::ZERO;
        for _ in 0..4 {
            share.add(10 * MILLI, false);
            let now = owes(&share).expect("it owes");
            assert!(now > before, "{now:?} after {before:?}");
            before = now;
        }
        share.add(Duration::from_secs(1_000), true);
        assert!(owes(&share).is_some_and(|wait| wait <= DEBT_MAX));
        std::thread::sleep(WAIT_MAX);
        assert!(share.pause(Instant::now()).is_none() && owes(&share).is_some(), "connections wait for less");
    }

    #[test]
    fn whoever_owes_is_told_with_the_milliseconds_until_it_has_paid() {
        let pace = late(5);
        let least = Duration::from_nanos(pace.most.load(Ordering::Relaxed));
        let (greedy, busy, _idle) = (pace.share(user("greedy")), pace.share(user("busy")), pace.share(user("idle")));
        let told = pace.told();
        assert_eq!(
            (told.resource, told.bound, told.share, told.taken),
            (NodeResourceKind::Processors, 1_000, 1_000, 0)
        );
        assert!(told.callers.is_empty(), "nobody owes");
        greedy.spend(Duration::from_secs(60));
        // It had saved up four shares of the sixty.
        busy.spend(60 * least);
        let told = pace.told();
        let owed: Vec<_> = told.callers.iter().map(|caller| (caller.name.as_deref(), caller.held)).collect();
        let [(Some("greedy"), most), (Some("busy"), less)] = owed[..] else { panic!("{owed:?}") };
        assert!((601..=1_000).contains(&most) && (1..=560).contains(&less), "{owed:?}");
        assert_eq!((told.taken, told.late, told.held_up), (most, Some(true), Some(0)), "they pay at the same time");
        std::thread::sleep(5 * MILLI);
        assert!(pace.told().taken < most, "less and less");
        pace.most.store(FREE, Ordering::Relaxed);
        assert_eq!(pace.told().late, Some(false));
    }

    #[test]
    fn whoever_waits_looks_again_before_it_has_paid() {
        let pace = late(5);
        let share = pace.share(user("ann"));
        share.add(Duration::from_secs(1_000), true);
        let now = Instant::now();
        assert!(share.pause(now).is_some_and(|until| until <= now + LOOK_AGAIN));
        pace.most.store(FREE, Ordering::Relaxed);
        assert_eq!(share.pause(now), None, "there is enough for all");
    }

    #[test]
    fn a_step_is_counted_by_the_time_of_the_processors_that_it_takes() {
        let share = late(5).share(user("ann"));
        share.step(Instant::now(), || std::thread::sleep(20 * MILLI));
        assert_eq!(owes(&share), None, "to wait takes none");
        let spin = || {
            let begun = watchdog::processor_time();
            while watchdog::processor_time() - begun < 20 * MILLI {}
        };
        share.step(Instant::now(), spin);
        assert!(owes(&share).is_some_and(|wait| wait > WINDOW), "forty shares, of which two were there");
    }

    #[test]
    fn accounts_that_wait_are_at_work() {
        let pace = late(2);
        let share = pace.share(user("ann"));
        share.add(Duration::from_secs(1), true);
        assert_eq!(pace.at_work.load(Ordering::Relaxed), 0);
        assert!(share.pause(Instant::now()).is_some());
        assert_eq!(pace.at_work.load(Ordering::Relaxed), 1);
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
    async fn a_share_that_is_fixed_stays_whatever_is_seen() {
        let (pace, stop) = (Pace::new(), CancellationToken::new());
        pace.fix(Some(WINDOW / 4));
        let watch = tokio::spawn(Arc::clone(&pace).watch(1, stop.clone()));
        let looks = || pace.look.load(Ordering::Relaxed);
        let first = looks();
        while looks() < first + 3 {
            tokio::time::sleep(MILLI).await;
        }
        let share = pace.share(user("ann"));
        share.spend(Duration::from_secs(1));
        assert!(owes(&share).is_some(), "one account asks, and nothing is late");
        pace.have_late(2);
        assert_eq!(pace.most(Instant::now()), WINDOW_NANOS / 4);
        stop.cancel();
        watch.await.expect("no panic");
        assert_eq!(pace.most(Instant::now()), WINDOW_NANOS / 4);
        pace.fix(None);
        assert_eq!(pace.most(Instant::now()), FREE);
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
