//! Turns: while a node has more to do than it can do at once, callers take turns, whoever has more requests.
//!
//! Owns how many requests of each account are at work, and those that wait for their turn. An account is an address until a connection has
//! shown whose it is ([`ConnectionAccount`]). Requests with large bodies have turns of their own, since each takes as long as hundreds of others. Nobody
//! waits while one account alone asks, or little is at work, and a request costs a few atomic operations then. Never refuses a request, and never
//! knows what it does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::alive_table::AliveTable;
use crate::connection::origin::Neighbour;
use crate::gateway::admission::accounts::Account;
use crate::gateway::admission::pace::{Pace, Share};
use crate::gateway::admission::request_class::RequestClass;
use crate::limits;
use crate::metrics::{MetricsSource, Sample};

/// Most accounts without a connection whose debts are kept. Each debt is of work done within the last second.
const OWING_MAX: usize = 256;

/// The turns of a node: of work on keys, of scans, and of large bodies. What keeps others alive, such as the renewal of a session, waits
/// for no turn.
#[derive(Debug)]
pub struct Turns {
    point: Arc<Work>,
    scan: Arc<Work>,
    large: Arc<Work>,
    /// The time of the processors that each account takes.
    pub pace: Arc<Pace>,
    lanes: AliveTable<Account, Lanes>,
    /// Those of accounts that owe time of the processors although their last connection has ended: the next one finds them.
    owing: Mutex<Vec<Arc<Lanes>>>,
}

/// The turns of one account.
#[derive(Debug)]
pub struct Lanes {
    point: Arc<Lane>,
    scan: Arc<Lane>,
    large: Arc<Lane>,
    /// The time of the processors that it takes.
    pub share: Arc<Share>,
}

/// The account that a connection is on: its address, until a request shows whose it is. One that several users share stays on its address, and
/// on each of theirs is what is done for them.
#[derive(Debug)]
pub struct ConnectionAccount {
    turns: Arc<Turns>,
    /// Whether it may be held up.
    pub is_paced: bool,
    from: Neighbour,
    on: Mutex<On>,
    /// Counts the changes of it.
    version: AtomicUsize,
}

#[derive(Debug)]
struct On {
    account: Account,
    lanes: Arc<Lanes>,
    is_shared: bool,
}

impl ConnectionAccount {
    /// A connection from an address.
    pub fn new(turns: &Arc<Turns>, from: Neighbour, is_paced: bool) -> Arc<Self> {
        let account = Account::Neighbour(from);
        let on = On { lanes: turns.lanes(account.clone()), account, is_shared: false };
        Arc::new(Self { turns: Arc::clone(turns), is_paced, from, on: Mutex::new(on), version: AtomicUsize::new(0) })
    }

    /// Those of its account.
    pub fn lanes(&self) -> Arc<Lanes> {
        Arc::clone(&self.on.lock().lanes)
    }

    /// Those of its account, with what is said when they change.
    pub fn lanes_now(&self) -> (usize, Arc<Lanes>) {
        let version = self.version.load(Ordering::Acquire);
        (version, self.lanes())
    }

    /// Whether its account has changed since then.
    pub fn has_changed(&self, version: usize) -> bool {
        self.version.load(Ordering::Relaxed) != version
    }

    /// A request of this account came by it. Gives the lanes of that request: those of its account, and of a stranger those of the connection.
    pub fn is(&self, account: Account) -> Arc<Lanes> {
        let mut on = self.on.lock();
        if on.account == account || !matches!(account, Account::User(_)) {
            return Arc::clone(&on.lanes);
        }
        let lanes = self.turns.lanes(account.clone());
        if on.is_shared {
            return lanes;
        }
        let is_shared = matches!(on.account, Account::User(_));
        let next = if is_shared { Account::Neighbour(self.from) } else { account };
        let next = On { lanes: self.turns.lanes(next.clone()), account: next, is_shared };
        let before = std::mem::replace(&mut *on, next);
        self.version.fetch_add(1, Ordering::Release);
        drop(on);
        self.turns.leave(before.lanes);
        lanes
    }
}

impl Drop for ConnectionAccount {
    fn drop(&mut self) {
        let lanes = Arc::clone(&self.on.get_mut().lanes);
        self.turns.leave(lanes);
    }
}

/// One kind of work.
#[derive(Debug)]
struct Work {
    /// So many requests may be at work before anybody waits.
    bound: usize,
    /// An account may have so many at work, however many others there are.
    least: usize,
    at_work: AtomicUsize,
    /// Accounts that have something at work.
    busy: AtomicUsize,
    waiting: AtomicUsize,
    /// Lanes in which somebody waits, the next one first.
    line: Mutex<VecDeque<Arc<Lane>>>,
}

/// One kind of work of one account.
#[derive(Debug)]
struct Lane {
    work: Arc<Work>,
    at_work: AtomicUsize,
    waiters: AtomicUsize,
    /// Those that wait, the next one first. Changed only by who holds the line of the work.
    waiting: Mutex<VecDeque<oneshot::Sender<Turn>>>,
}

/// A request that is at work, until it is dropped.
#[derive(Debug)]
pub struct Turn(Option<Arc<Lane>>);

/// What became of the wish to begin.
#[derive(Debug)]
pub enum Begun {
    /// It is its turn, where it needs one.
    Now(Option<Turn>),
    /// It will be told.
    Later(oneshot::Receiver<Turn>),
}

impl Default for Turns {
    /// Nobody is at work.
    fn default() -> Self {
        let work = |bound, least| {
            let (at_work, busy, waiting) = Default::default();
            Arc::new(Work { bound, least, at_work, busy, waiting, line: Mutex::default() })
        };
        Self {
            point: work(limits::POINT_TURNS, limits::TURNS_MIN),
            scan: work(limits::SCAN_TURNS, limits::TURNS_MIN),
            large: work(limits::LARGE_TURNS, 1),
            pace: Pace::new(),
            lanes: AliveTable::default(),
            owing: Mutex::default(),
        }
    }
}

impl Turns {
    /// Those of an account.
    pub fn lanes(&self, of: Account) -> Arc<Lanes> {
        let lane = |work: &Arc<Work>| {
            let (at_work, waiters, waiting) = Default::default();
            Arc::new(Lane { work: Arc::clone(work), at_work, waiters, waiting })
        };
        self.lanes.get(of.clone(), || Lanes {
            point: lane(&self.point),
            scan: lane(&self.scan),
            large: lane(&self.large),
            share: self.pace.share(of),
        })
    }

    /// Charges an account for work that was done elsewhere, perhaps after its last connection has ended.
    pub fn charge(&self, lanes: Arc<Lanes>, took: Duration) {
        lanes.share.spend(took);
        self.leave(lanes);
    }

    /// Takes a connection off these. Their debt is kept until it is paid: an account must not lose it by connecting anew.
    fn leave(&self, lanes: Arc<Lanes>) {
        let now = Instant::now();
        if !lanes.share.owes(now) {
            return;
        }
        let mut owing = self.owing.lock();
        owing.retain(|other| other.share.owes(now) && !Arc::ptr_eq(other, &lanes));
        if owing.len() < OWING_MAX {
            owing.push(lanes);
        } else if let Some(least) = owing.iter_mut().min_by_key(|other| other.share.paid_at())
            && least.share.paid_at() < lanes.share.paid_at()
        {
            *least = lanes;
        }
    }
}

impl Lanes {
    fn of(&self, class: RequestClass) -> Option<&Arc<Lane>> {
        match class {
            RequestClass::Point => Some(&self.point),
            RequestClass::Scan => Some(&self.scan),
            RequestClass::Coordination | RequestClass::Waiting | RequestClass::Node => None,
        }
    }

    /// Begins a request of this class, or has it wait for its turn.
    pub fn begin(&self, class: RequestClass) -> Begun {
        self.of(class).map_or(Begun::Now(None), Lane::ask)
    }

    /// Begins a request with a large body, or has it wait for its turn. It keeps the turn of its class meanwhile. Its body is in memory
    /// before either, so the share of its account bounds how many of them wait here.
    pub fn begin_large(&self) -> Begun {
        self.large.ask()
    }

    /// Whether one more operation of a stream would not have to wait.
    pub fn may_begin_op(&self) -> bool {
        self.point.may_begin()
    }

    /// Begins an operation of a stream, whether it is its turn or not: see [`Self::may_begin_op`].
    pub fn begin_op(&self) -> Turn {
        self.point.begin()
    }
}

impl Lane {
    /// Begins, or joins those that wait; who came before goes first.
    fn ask(self: &Arc<Self>) -> Begun {
        let has_turn = self.waiters.load(Ordering::SeqCst) == 0 && self.may_begin();
        if has_turn { Begun::Now(Some(self.begin())) } else { Begun::Later(self.join()) }
    }

    /// Whether one more may begin: always where its account has less than its share. Two at once may both begin where there was room for
    /// one: the bound is no promise.
    fn may_begin(&self) -> bool {
        let Work { bound, least, at_work, busy, .. } = &*self.work;
        let own = self.at_work.load(Ordering::SeqCst);
        let others = busy.load(Ordering::SeqCst).saturating_sub(usize::from(own > 0));
        others == 0 || at_work.load(Ordering::SeqCst) < *bound || own < (bound / (others + 1)).max(*least)
    }

    fn begin(self: &Arc<Self>) -> Turn {
        if self.at_work.fetch_add(1, Ordering::SeqCst) == 0 {
            self.work.busy.fetch_add(1, Ordering::SeqCst);
        }
        self.work.at_work.fetch_add(1, Ordering::SeqCst);
        Turn(Some(Arc::clone(self)))
    }

    fn end(&self) {
        self.work.at_work.fetch_sub(1, Ordering::SeqCst);
        if self.at_work.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.work.busy.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Joins those that wait. Who ends a turn after this sees that somebody waits, and who ended one before is seen here.
    fn join(self: &Arc<Self>) -> oneshot::Receiver<Turn> {
        let (sender, receiver) = oneshot::channel();
        let mut line = self.work.line.lock();
        self.work.waiting.fetch_add(1, Ordering::SeqCst);
        self.waiting.lock().push_back(sender);
        if self.waiters.fetch_add(1, Ordering::SeqCst) == 0 {
            line.push_back(Arc::clone(self));
        }
        self.work.call_next(&mut line);
        receiver
    }

    /// Gives a turn to the first of those that wait, passing over those that are gone. The caller holds the line.
    fn call(self: &Arc<Self>) -> bool {
        loop {
            let Some(next) = self.waiting.lock().pop_front() else { return false };
            self.waiters.fetch_sub(1, Ordering::SeqCst);
            self.work.waiting.fetch_sub(1, Ordering::SeqCst);
            match next.send(self.begin()) {
                Ok(()) => return true,
                // Ended here: to drop it would ask for the line that is held.
                Err(mut refused) => refused.0.take().iter().for_each(|lane| lane.end()),
            }
        }
    }
}

impl Work {
    /// Gives turns to those that wait, one lane after the other, as long as there is room for them.
    fn call_next(&self, line: &mut VecDeque<Arc<Lane>>) {
        let mut passed = 0;
        while passed < line.len() {
            let Some(lane) = line.pop_front() else { return };
            let is_called = lane.may_begin() && lane.call();
            passed = if is_called { 0 } else { passed + 1 };
            if lane.waiters.load(Ordering::SeqCst) > 0 {
                line.push_back(lane);
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(lane) = self.0.take() else { return };
        lane.end();
        if lane.work.waiting.load(Ordering::SeqCst) > 0 {
            lane.work.call_next(&mut lane.work.line.lock());
        }
    }
}

/// The numbers of those that wait, for the metrics.
pub struct TurnSamples(pub Arc<Turns>);

impl MetricsSource for TurnSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        let Turns { point, scan, large, pace, .. } = &*self.0;
        for (class, work) in [(RequestClass::Point.name(), point), (RequestClass::Scan.name(), scan), ("large", large)]
        {
            let waiting = work.waiting.load(Ordering::Relaxed) as u64;
            let help = "Requests that wait for the turn of their account";
            out.push(Sample::gauge("http_turns_waiting", help, waiting).labelled("class", class));
        }
        let help = "Connections, requests and reads of watches that wait since their account took more than its share of the processors";
        out.push(Sample::gauge("http_connections_held_up", help, pace.held_up.load(Ordering::Relaxed) as u64));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn address(last: u8) -> Neighbour {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)).into()
    }

    fn lanes(turns: &Turns, last: u8) -> Arc<Lanes> {
        turns.lanes(Account::Neighbour(address(last)))
    }

    fn owes(lanes: &Lanes) -> bool {
        lanes.share.owes(Instant::now())
    }

    /// Has everything be late until nobody is allowed more than the least, and this account owe.
    fn owe(turns: &Turns, lanes: &Lanes) {
        turns.pace.have_late(2);
        lanes.share.spend(Duration::from_secs(1));
        assert!(owes(lanes));
    }

    fn user(name: &str) -> Account {
        Account::User(name.into())
    }

    fn connection(turns: &Arc<Turns>, last: u8) -> Arc<ConnectionAccount> {
        ConnectionAccount::new(turns, address(last), true)
    }

    #[test]
    fn a_connection_is_on_its_address_until_it_shows_whose_it_is() {
        let turns = Arc::new(Turns::default());
        let [one, other, third] = [1, 1, 2].map(|last| connection(&turns, last));
        assert!(Arc::ptr_eq(&one.lanes(), &other.lanes()) && !Arc::ptr_eq(&one.lanes(), &third.lanes()));
        let (version, _) = one.lanes_now();
        let ann = one.is(user("ann"));
        assert!(one.has_changed(version) && Arc::ptr_eq(&ann, &one.lanes()));
        assert!(Arc::ptr_eq(&ann, &third.is(user("ann"))) && Arc::ptr_eq(&ann, &third.lanes()));
        assert!(!Arc::ptr_eq(&ann, &other.lanes()));
        let (version, _) = one.lanes_now();
        let stranger = one.is(Account::Neighbour(address(1)));
        assert!(Arc::ptr_eq(&stranger, &ann) && !one.has_changed(version), "a stranger's request costs the owner");
    }

    #[test]
    fn a_connection_of_several_users_is_on_its_address_and_each_request_on_its_own_account() {
        let turns = Arc::new(Turns::default());
        let (shared, of_address) = (connection(&turns, 1), connection(&turns, 1));
        let ann = shared.is(user("ann"));
        let bob = shared.is(user("bob"));
        assert!(!Arc::ptr_eq(&ann, &bob) && Arc::ptr_eq(&shared.lanes(), &of_address.lanes()));
        assert!(Arc::ptr_eq(&shared.is(user("ann")), &ann) && Arc::ptr_eq(&shared.lanes(), &of_address.lanes()));
    }

    #[test]
    fn whoever_owes_still_owes_after_it_has_connected_anew() {
        let turns = Arc::new(Turns::default());
        let one = connection(&turns, 1);
        owe(&turns, &one.is(user("ann")));
        drop(one);
        let one = connection(&turns, 1);
        assert!(!owes(&one.lanes()), "the address owes nothing");
        assert!(owes(&one.is(user("ann"))));
        assert!(!owes(&one.is(user("bob"))));
        assert!(owes(&one.is(user("ann"))), "nor by being somebody else meanwhile");
        drop(one);
        // Small debts push out no large one.
        for number in 0..2 * OWING_MAX {
            let other = connection(&turns, 1);
            let lanes = other.is(user(&number.to_string()));
            lanes.share.spend(Duration::from_millis(60));
            assert!(owes(&lanes));
        }
        assert_eq!(turns.owing.lock().len(), OWING_MAX);
        assert!(owes(&connection(&turns, 1).is(user("ann"))));
        turns.charge(turns.lanes(user("eve")), Duration::from_secs(1));
        assert!(owes(&connection(&turns, 1).is(user("eve"))), "it has no connection, and owes more than the others");
    }

    #[test]
    fn whoever_owes_is_told_though_its_last_connection_has_ended() {
        let turns = Arc::new(Turns::default());
        let one = connection(&turns, 1);
        owe(&turns, &one.is(user("ann")));
        drop(one);
        let told = turns.pace.told().callers;
        assert_eq!(told.len(), 1, "the address owes nothing: {told:?}");
        assert!(told[0].name.as_deref() == Some("ann") && (1..=1_000).contains(&told[0].held), "{told:?}");
    }

    fn now(begun: Begun) -> Turn {
        match begun {
            Begun::Now(Some(turn)) => turn,
            other => panic!("it has to wait: {other:?}"),
        }
    }

    fn later(begun: Begun) -> oneshot::Receiver<Turn> {
        match begun {
            Begun::Later(turn) => turn,
            other => panic!("it need not wait: {other:?}"),
        }
    }

    #[test]
    fn one_account_alone_never_waits() {
        let turns = Turns::default();
        let alone = lanes(&turns, 1);
        let many: Vec<_> = (0..10 * limits::POINT_TURNS).map(|_| now(alone.begin(RequestClass::Point))).collect();
        drop(many);
        assert_eq!((turns.point.at_work.load(Ordering::SeqCst), turns.point.busy.load(Ordering::SeqCst)), (0, 0));
    }

    #[test]
    fn who_has_less_than_its_share_begins_at_once_and_who_has_more_waits() {
        let turns = Turns::default();
        let (greedy, honest) = (lanes(&turns, 1), lanes(&turns, 2));
        let mut many: Vec<_> = (0..2 * limits::POINT_TURNS).map(|_| now(greedy.begin(RequestClass::Point))).collect();
        let one = now(honest.begin(RequestClass::Point));
        let mut waits = later(greedy.begin(RequestClass::Point));
        assert!(!greedy.may_begin_op() && honest.may_begin_op());
        // Down to the share of two.
        many.truncate(limits::POINT_TURNS / 2);
        let granted = waits.try_recv().expect("it is its turn");
        drop((granted, one, many));
        assert_eq!((turns.point.at_work.load(Ordering::SeqCst), turns.point.waiting.load(Ordering::SeqCst)), (0, 0));
    }

    #[test]
    fn large_bodies_of_an_account_go_one_by_one_while_others_have_some() {
        let turns = Turns::default();
        let (greedy, honest) = (lanes(&turns, 1), lanes(&turns, 2));
        let many: Vec<_> = (0..2 * limits::LARGE_TURNS).map(|_| now(greedy.begin_large())).collect();
        let one = now(honest.begin_large());
        let (mut waits, small) = (later(greedy.begin_large()), now(greedy.begin(RequestClass::Point)));
        drop(small);
        assert!(waits.try_recv().is_err(), "others have a part of the turns");
        drop(many);
        drop((waits.try_recv().expect("it is its turn"), one));
        assert_eq!((turns.large.at_work.load(Ordering::SeqCst), turns.large.busy.load(Ordering::SeqCst)), (0, 0));
    }

    #[test]
    fn those_that_wait_go_first_and_those_that_are_gone_are_passed_over() {
        let turns = Turns::default();
        let (greedy, honest) = (lanes(&turns, 1), lanes(&turns, 2));
        let mut many: Vec<_> = (0..2 * limits::SCAN_TURNS).map(|_| now(greedy.begin(RequestClass::Scan))).collect();
        let _one = now(honest.begin(RequestClass::Scan));
        let (gone, mut first) = (later(greedy.begin(RequestClass::Scan)), later(greedy.begin(RequestClass::Scan)));
        drop(gone);
        let mut second = later(greedy.begin(RequestClass::Scan));
        while first.try_recv().is_err() {
            assert!(second.try_recv().is_err(), "the first one goes first");
            drop(many.pop().expect("it is its turn once the others are done"));
        }
        drop(many);
        assert!(second.try_recv().is_ok());
        assert_eq!(turns.scan.waiting.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn what_keeps_others_alive_waits_for_no_turn() {
        let lanes = lanes(&Turns::default(), 1);
        for class in [RequestClass::Coordination, RequestClass::Waiting, RequestClass::Node] {
            assert!(matches!(lanes.begin(class), Begun::Now(None)));
        }
    }

    #[test]
    fn no_turn_is_lost_between_threads() {
        let turns = Arc::new(Turns::default());
        let threads: Vec<_> = (0..4u8)
            .map(|n| {
                let lanes = lanes(&turns, n % 2);
                std::thread::spawn(move || {
                    let mut held = VecDeque::new();
                    for round in 0..20_000 {
                        let turn = match lanes.begin(RequestClass::Scan) {
                            Begun::Now(turn) => turn.expect("scans have turns"),
                            // Others of this thread are at work, and may be what it waits for.
                            Begun::Later(_) if round % 7 == 0 => continue,
                            Begun::Later(turn) => {
                                held.clear();
                                turn.blocking_recv().expect("it is its turn some day")
                            }
                        };
                        held.push_back(turn);
                        if held.len() > 40 {
                            held.pop_front();
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let counts = [&turns.scan.at_work, &turns.scan.busy].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(counts, [0, 0]);
    }
}
