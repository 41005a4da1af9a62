//! Admission of requests: classes, each with its own bound on what its requests cost together.
//!
//! Owns the bounds, what is in use of them, the share of one account, and the word on when there will be room again. A class that is full
//! refuses its own requests and nobody else's, so that no flood of reads or writes keeps a session from being renewed. Once half of a class
//! is taken, one account gets no more than a quarter of it, and an eighth at least. On the way of a request there are two atomic operations, no lock and no
//! allocation, as long as little is in use: nothing is counted on accounts until then. Never knows what a request does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use quorate_api::{NodeResource, NodeResourceKind};

use crate::gateway::admission::accounts::Account;
use crate::gateway::admission::refusals::Numbers;
use crate::gateway::admission::request_class::RequestClass;
use crate::gateway::admission::shares::{HeldShare, Resource};
use crate::gateway::admission::turns::Turn;
use crate::gateway::failure::Failure;
use crate::limits;
use crate::metrics::{MetricsSource, Sample};

/// One part in so many of the class for named keys is left to requests of one operation: sixteen bulks of a thousand would fill it, and
/// whoever writes one key would be refused for as long as others come with more of them.
const POINT_LEFT_TO_SMALL: usize = 8;

/// One account may have one part in this many of a class once half of it is taken.
const SHARE: usize = 4;

/// While no more than one part in this many of a class is in use, nothing is counted on accounts. Requests that were not counted never come
/// to more than that, so an account that may have the rest of its share beside them has no more than its share, and half of it at least.
const UNCOUNTED: usize = 8;

/// The bounds of the classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassLimits {
    /// Requests for coordination.
    pub coordination: usize,
    /// Operations on keys.
    pub point: usize,
    /// Cost of scans.
    pub scan: usize,
    /// Requests that wait.
    pub waiting: usize,
    /// Requests whose body is still on its way. They have no place of their class yet.
    pub arriving: usize,
}

impl Default for ClassLimits {
    fn default() -> Self {
        Self {
            coordination: limits::COORDINATION_MAX,
            point: limits::POINT_OPS_MAX,
            scan: limits::SCAN_COST_MAX,
            waiting: limits::WAITING_MAX,
            arriving: limits::ARRIVING_MAX,
        }
    }
}

/// One class. On a cache line of its own: another one's traffic does not slow it down.
#[derive(Debug)]
#[repr(align(64))]
struct ClassLoad {
    bound: usize,
    /// What there may be with a request that costs more than 1: the rest of the class is left to those that do not.
    bound_of_large: usize,
    /// While no more than this is in use, nothing is counted on accounts.
    uncounted_max: usize,
    in_use: AtomicUsize,
    refused: AtomicU64,
    /// How long requests took of late, microseconds: a moving mean. Two that end at once may lose one of them, which is no harm.
    took: AtomicU64,
    /// The amounts that were counted on accounts; `None` where they have no shares.
    counted: Option<Resource>,
}

/// The state of a class as a request took room in it.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// The amount in use with its own.
    in_use: usize,
    /// A flag, set where no others were there. A lone request may cost what it likes, or it would never be done.
    is_alone: bool,
}

impl ClassLoad {
    fn new(bound: usize, left_to_small: usize) -> Self {
        let (in_use, refused, took) = Default::default();
        let (bound_of_large, uncounted_max, counted) = (bound - left_to_small, usize::MAX, None);
        Self { bound, bound_of_large, uncounted_max, in_use, refused, took, counted }
    }

    /// The same with shares of accounts.
    fn shared(self, what: NodeResourceKind) -> Self {
        let uncounted_max = self.bound / UNCOUNTED;
        let of_one = (self.bound / SHARE - uncounted_max).max(1);
        let counted = Some(Resource::bounded_elsewhere(what, self.bound, of_one));
        Self { uncounted_max, counted, ..self }
    }

    /// How much one account may have once half is in use.
    fn of_one(&self) -> usize {
        (self.bound / SHARE).max(1)
    }

    /// Has `held` hold this `cost` on an account, where so much is in use that it counts. Refused where half is in use, or more, and the
    /// account has its share. A refusal leaves `held` as it was.
    fn count(
        &self,
        found: Found,
        cost: usize,
        held: &mut Option<HeldShare>,
        account: impl FnOnce() -> Account,
    ) -> Result<(), ShareIsTaken> {
        let Some(counted) = &self.counted else { return Ok(()) };
        let may_have_any = found.is_alone || found.in_use <= self.bound / 2;
        let reserve = if may_have_any { usize::MAX } else { 0 };
        let held = held.get_or_insert_with(|| HeldShare::of(counted.of(account())));
        held.hold(cost, reserve).map_err(|_full| ShareIsTaken)
    }
}

/// Half of a class is in use, and an account has its share.
struct ShareIsTaken;

/// All classes of a node.
#[derive(Debug)]
pub struct RequestClasses([ClassLoad; RequestClass::ALL.len()]);

impl RequestClasses {
    /// All of them empty.
    pub fn new(bounds: ClassLimits) -> Self {
        let ClassLimits { coordination, point, scan, waiting, arriving: _ } = bounds;
        let whole = |bound| ClassLoad::new(bound, 0);
        let coordination = whole(coordination).shared(NodeResourceKind::Coordination);
        let point = ClassLoad::new(point, point / POINT_LEFT_TO_SMALL).shared(NodeResourceKind::Point);
        let scan = whole(scan).shared(NodeResourceKind::Scan);
        // Waits have shares of their own, whatever they wait for.
        Self([coordination, point, scan, whole(waiting), whole(usize::MAX)])
    }

    /// Those that accounts have shares of.
    fn shared(&self) -> impl Iterator<Item = (&ClassLoad, &Resource)> {
        self.0.iter().filter_map(|room| Some((room, room.counted.as_ref()?)))
    }

    /// The numbers of those, for the metrics.
    pub fn numbers(&self) -> Vec<Numbers> {
        let numbers = |(room, counted): (&ClassLoad, &Resource)| {
            let mut numbers = counted.numbers();
            (numbers.amounts.of_one, numbers.amounts.taken) = (room.of_one(), room.in_use.load(Ordering::Relaxed));
            numbers.refused = room.refused.load(Ordering::Relaxed);
            numbers
        };
        self.shared().map(numbers).collect()
    }

    /// The same with the accounts that hold most, for operators. An amount that was not counted on any is in what is taken only.
    pub fn told(&self) -> Vec<NodeResource> {
        let told = |(room, counted): (&ClassLoad, &Resource)| {
            let mut told = counted.told();
            told.share = room.of_one() as u64;
            told.taken = room.in_use.load(Ordering::Relaxed) as u64;
            told.refused = room.refused.load(Ordering::Relaxed);
            told
        };
        self.shared().map(told).collect()
    }

    fn room(&self, class: RequestClass) -> &ClassLoad {
        &self.0[class as usize]
    }

    /// Takes room for this cost, to be given back by [`Self::give_back`]. Whatever it costs, it fits into a class that is empty.
    pub fn take(&self, class: RequestClass, cost: usize) -> Result<(), Failure> {
        self.take_finding(class, cost).map(|_found| ())
    }

    /// The same, and says what was found.
    fn take_finding(&self, class: RequestClass, cost: usize) -> Result<Found, Failure> {
        self.try_take(class, cost).ok_or_else(|| {
            self.give_back(class, cost);
            self.refusal(class)
        })
    }

    /// Takes it in any case; `None` where there was no room.
    fn try_take(&self, class: RequestClass, cost: usize) -> Option<Found> {
        let room = self.room(class);
        let before = room.in_use.fetch_add(cost, Ordering::Relaxed);
        let found = Found { in_use: before.saturating_add(cost), is_alone: before == 0 };
        (found.is_alone || found.in_use <= room.bound).then_some(found)
    }

    /// Takes room for this cost on an account. A refusal takes nothing.
    fn take_on(
        &self,
        class: RequestClass,
        cost: usize,
        account: impl FnOnce() -> Account,
    ) -> Result<Option<HeldShare>, Failure> {
        let found = self.take_finding(class, cost)?;
        let room = self.room(class);
        if found.in_use <= room.uncounted_max {
            return Ok(None);
        }
        let mut held = None;
        room.count(found, cost, &mut held, account).map_err(|ShareIsTaken| {
            self.give_back(class, cost);
            self.share_refusal(class)
        })?;
        Ok(held)
    }

    /// Gives back what was taken.
    pub fn give_back(&self, class: RequestClass, cost: usize) {
        self.room(class).in_use.fetch_sub(cost, Ordering::Relaxed);
    }

    /// The permit of a request, which takes nothing yet: see [`Permit::enter`].
    pub fn permit(self: &Arc<Self>, class: RequestClass) -> Permit {
        Permit {
            classes: Arc::clone(self),
            class: AtomicUsize::new(class as usize),
            cost: AtomicUsize::new(0),
            counted: Mutex::default(),
            turn: Mutex::default(),
            large: Mutex::default(),
        }
    }

    /// A request was done after this time, waits that it wished for aside.
    pub fn observe(&self, class: RequestClass, took: Duration) {
        let room = self.room(class);
        let before = room.took.load(Ordering::Relaxed);
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // An eighth of the way, and always some: a mean that stands still would not be one.
        let step = took.abs_diff(before).div_ceil(8);
        let after = if took > before { before.saturating_add(step) } else { before - step };
        room.took.store(after, Ordering::Relaxed);
    }

    /// Counts a refusal that is told in another way.
    pub fn count_refusal(&self, class: RequestClass) {
        let room = self.room(class);
        room.refused.fetch_add(1, Ordering::Relaxed);
        if let Some(counted) = &room.counted {
            counted.refused_elsewhere();
        }
    }

    /// Counts a refusal and says what there is to say: which class is full, and when those in it will be done.
    pub fn refusal(&self, class: RequestClass) -> Failure {
        let room = self.room(class);
        self.count_refusal(class);
        let (name, bound) = (class.name(), room.bound);
        let detail = match class {
            RequestClass::Coordination => {
                format!("the class `{name}` of this node is full: it takes {bound} requests at once")
            }
            RequestClass::Point => {
                let of_large = room.bound_of_large;
                format!(
                    "the class `{name}` of this node is full: it takes {bound} operations at once, \
                     {of_large} of them in requests with more than one"
                )
            }
            RequestClass::Scan => {
                format!("the class `{name}` of this node is full: it takes scans of {bound} units of cost at once")
            }
            RequestClass::Waiting => {
                format!("the class `{name}` of this node is full: {bound} requests may wait at once")
            }
            RequestClass::Node => "this node has no room".to_owned(),
        };
        Failure::too_many(detail).after(self.room_in(class))
    }

    /// The refusal of what one account has its share of. The share counted it.
    fn share_refusal(&self, class: RequestClass) -> Failure {
        let (name, room) = (class.name(), self.room(class));
        // The amount in use while nothing was counted may be its own or that of others.
        let least = room.counted.as_ref().map_or(0, Resource::of_one);
        let (bound, most) = (room.bound, room.of_one());
        let detail = format!(
            "half of the class `{name}` of this node is taken, and your requests have the share that one account may have \
             then, a cost of {least} to {most} of the {bound} for all: send fewer at once"
        );
        Failure::too_many(detail).after(self.room_in(class))
    }

    /// When those that are in a class now will be gone. As many go in the time that one takes as are in it at once.
    fn room_in(&self, class: RequestClass) -> Duration {
        let took = Duration::from_micros(self.room(class).took.load(Ordering::Relaxed));
        let bounds = limits::RETRY_AFTER_MS_MIN..=limits::RETRY_AFTER_MS_MAX;
        took.clamp(Duration::from_millis(*bounds.start()), Duration::from_millis(*bounds.end()))
    }
}

/// What a request takes of its class, until it is answered.
#[derive(Debug)]
pub struct Permit {
    classes: Arc<RequestClasses>,
    /// The number of its class. Changed by its own request only, as the next one.
    class: AtomicUsize,
    /// 0 for one that has not entered.
    cost: AtomicUsize,
    /// The part of it that is counted on an account: nothing or all, and nothing while it waits.
    counted: Mutex<Option<HeldShare>>,
    /// Its turn among those of its account; see [`Permit::hold`].
    turn: Mutex<Option<Turn>>,
    /// Its turn among large bodies; see [`Permit::hold_large`].
    large: Mutex<Option<Turn>>,
}

impl Permit {
    /// The class.
    pub fn class(&self) -> RequestClass {
        RequestClass::ALL[self.class.load(Ordering::Relaxed)]
    }

    /// Takes a place for a request whose cost is 1 so far, on this account.
    pub fn enter(&self, account: impl FnOnce() -> Account) -> Result<(), Failure> {
        let counted = self.classes.take_on(self.class(), 1, account)?;
        if counted.is_some() {
            *self.counted.lock() = counted;
        }
        self.cost.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Whether it has a place.
    pub fn is_held(&self) -> bool {
        self.cost.load(Ordering::Relaxed) > 0
    }

    /// Goes on in another class: takes room there for what it costs so far, and gives back what it had, its turn with it. Where there is no
    /// room it stays where it was.
    pub fn move_to(&self, class: RequestClass, account: impl FnOnce() -> Account) -> Result<(), Failure> {
        let (before, had) = (self.class(), self.cost.load(Ordering::Relaxed));
        // A call within another one has no cost yet when it begins.
        let cost = had.max(1);
        *self.counted.lock() = self.classes.take_on(class, cost, account)?;
        self.class.store(class as usize, Ordering::Relaxed);
        self.cost.store(cost, Ordering::Relaxed);
        self.classes.give_back(before, had);
        drop((self.turn.lock().take(), self.large.lock().take()));
        Ok(())
    }

    /// The request turned out to cost so much, all in all.
    pub fn costs(&self, cost: usize, account: impl FnOnce() -> Account) -> Result<(), Failure> {
        let (class, own) = (self.class(), self.cost.load(Ordering::Relaxed));
        let more = cost.saturating_sub(own);
        let room = self.classes.room(class);
        let before = room.in_use.fetch_add(more, Ordering::Relaxed);
        self.cost.store(own + more, Ordering::Relaxed);
        let found = Found { in_use: before.saturating_add(more), is_alone: before <= own };
        let bound = if cost > 1 { room.bound_of_large } else { room.bound };
        if !(found.is_alone || found.in_use <= bound) {
            return Err(self.classes.refusal(class));
        }
        if more == 0 || found.in_use <= room.uncounted_max {
            return Ok(());
        }
        let counted = room.count(found, own + more, &mut self.counted.lock(), account);
        counted.map_err(|ShareIsTaken| self.classes.share_refusal(class))
    }

    /// Waits in the class for that, and out of its own until what is returned is dropped; `None` where no more may wait. The request is counted
    /// on this account once it goes on, however little was in use as it came: many of those that wait may go on at once.
    pub fn wait(&self, account: impl FnOnce() -> Account) -> Option<Waiting<'_>> {
        let (classes, class, cost) = (&*self.classes, self.class(), self.cost.load(Ordering::Relaxed));
        if classes.try_take(RequestClass::Waiting, 1).is_none() {
            classes.give_back(RequestClass::Waiting, 1);
            return None;
        }
        classes.give_back(class, cost);
        if let Some(counted) = &classes.room(class).counted
            && cost > 0
        {
            self.counted.lock().get_or_insert_with(|| HeldShare::of(counted.of(account())));
        }
        self.recount(0);
        // Its turn, too: others are at work meanwhile.
        drop((self.turn.lock().take(), self.large.lock().take()));
        Some(Waiting { permit: self, class, cost })
    }

    /// Has its account hold so much from now on, whether there is room or not.
    fn recount(&self, cost: usize) {
        if let Some(counted) = &*self.counted.lock() {
            // Never refused with such a reserve.
            let _always = counted.hold(cost, usize::MAX);
        }
    }

    /// Keeps this turn until the request is answered, or waits.
    pub fn hold(&self, turn: Turn) {
        *self.turn.lock() = Some(turn);
    }

    /// The same for that of a large body.
    pub fn hold_large(&self, turn: Turn) {
        *self.large.lock() = Some(turn);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.classes.give_back(self.class(), self.cost.load(Ordering::Relaxed));
    }
}

/// A request that waits. What it had of its own class it takes again when it goes on, room or not: it was let in once.
#[derive(Debug)]
pub struct Waiting<'l> {
    permit: &'l Permit,
    class: RequestClass,
    cost: usize,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let classes = &self.permit.classes;
        classes.room(self.class).in_use.fetch_add(self.cost, Ordering::Relaxed);
        self.permit.recount(self.cost);
        classes.give_back(RequestClass::Waiting, 1);
    }
}

/// The numbers of the classes, for the metrics.
pub struct ClassSamples(pub Arc<RequestClasses>);

impl MetricsSource for ClassSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        type Number = fn(&ClassLoad) -> Sample;
        let numbers: [Number; 3] = [
            |room| {
                let in_use = room.in_use.load(Ordering::Relaxed) as u64;
                Sample::gauge("http_class_in_use", "What the requests of a class cost together at the moment", in_use)
            },
            |room| Sample::gauge("http_class_bound", "What they may cost together", room.bound as u64),
            |room| {
                let refused = room.refused.load(Ordering::Relaxed);
                Sample::counter("http_class_refused", "Requests and operations that found their class full", refused)
            },
        ];
        for number in numbers {
            let bounded = RequestClass::ALL.into_iter().filter(|class| *class != RequestClass::Node);
            out.extend(bounded.map(|class| number(self.0.room(class)).labelled("class", class.name())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes() -> Arc<RequestClasses> {
        Arc::new(RequestClasses::new(ClassLimits { coordination: 2, point: 10, scan: 4, waiting: 1, arriving: 1 }))
    }

    fn user(name: &str) -> Account {
        Account::User(name.into())
    }

    /// Another account each time, so that no share is used up.
    fn somebody() -> Account {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        user(&format!("user-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// A request that wants a place, and whether it has it.
    fn tried(classes: &Arc<RequestClasses>, class: RequestClass) -> (Permit, bool) {
        let permit = classes.permit(class);
        let is_in = permit.enter(somebody).is_ok();
        assert_eq!(permit.is_held(), is_in);
        (permit, is_in)
    }

    fn entered(classes: &Arc<RequestClasses>, class: RequestClass) -> Permit {
        let (permit, is_in) = tried(classes, class);
        assert!(is_in, "there is room");
        permit
    }

    fn has_room(classes: &Arc<RequestClasses>, class: RequestClass) -> bool {
        tried(classes, class).1
    }

    fn in_use(classes: &RequestClasses) -> Vec<usize> {
        classes.0.iter().map(|room| room.in_use.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn a_full_lane_refuses_its_own_and_nobody_else() {
        let classes = classes();
        let places: Vec<_> = (0..2).map(|_| entered(&classes, RequestClass::Coordination)).collect();
        let (third, is_in) = tried(&classes, RequestClass::Coordination);
        assert!(!is_in);
        assert!(has_room(&classes, RequestClass::Point) && has_room(&classes, RequestClass::Node));
        drop((places, third));
        assert_eq!(in_use(&classes), [0; 5]);
        assert!(has_room(&classes, RequestClass::Coordination));
    }

    #[test]
    fn a_full_class_counts_as_a_resource_that_refused_and_has_a_line_in_the_log() {
        let classes = classes();
        let _places: Vec<_> = (0..2).map(|_| entered(&classes, RequestClass::Coordination)).collect();
        for _ in 0..3 {
            assert!(!has_room(&classes, RequestClass::Coordination));
        }
        let refused = |class| classes.room(class).counted.as_ref().expect("it has shares").numbers().refused;
        assert_eq!((refused(RequestClass::Coordination), refused(RequestClass::Point)), (3, 0));
        assert_eq!(classes.numbers().iter().map(|numbers| numbers.refused).collect::<Vec<_>>(), [3, 0, 0]);
    }

    #[test]
    fn what_has_not_entered_takes_nothing() {
        let classes = classes();
        let heads: Vec<_> = (0..100).map(|_| classes.permit(RequestClass::Coordination)).collect();
        let waiting = heads[0].wait(somebody).expect("one may wait");
        assert_eq!(in_use(&classes), [0, 0, 0, 1, 0]);
        drop(waiting);
        assert!(heads[1].enter(somebody).is_ok() && heads[1].is_held());
        assert_eq!(in_use(&classes), [1, 0, 0, 0, 0]);
        // A call within another one begins in its class.
        assert!(heads[2].move_to(RequestClass::Scan, somebody).is_ok());
        assert_eq!(in_use(&classes), [1, 0, 1, 0, 0]);
        drop(heads);
        assert_eq!(in_use(&classes), [0; 5]);
    }

    #[test]
    fn the_cost_counts_and_one_alone_may_cost_what_it_likes() {
        let classes = classes();
        let large = entered(&classes, RequestClass::Point);
        assert!(large.costs(1_000, somebody).is_ok(), "alone");
        let (other, is_in) = tried(&classes, RequestClass::Point);
        assert!(!is_in);
        drop(large);
        assert!(
            other.enter(somebody).is_ok()
                && other.costs(8, somebody).is_ok()
                && classes.take(RequestClass::Point, 2).is_ok()
        );
        assert!(classes.take(RequestClass::Point, 1).is_err());
        let third = classes.permit(RequestClass::Point);
        assert!(third.costs(2, somebody).is_err());
        drop((other, third));
        classes.give_back(RequestClass::Point, 2);
        assert_eq!(in_use(&classes), [0; 5]);
    }

    #[test]
    fn what_is_left_to_small_requests_no_large_one_takes() {
        let bounds = ClassLimits { coordination: 2, point: 64, scan: 4, waiting: 1, arriving: 1 };
        let classes = Arc::new(RequestClasses::new(bounds));
        let [first, second, third, fourth, last] = [(); 5].map(|()| entered(&classes, RequestClass::Point));
        assert!(first.costs(28, somebody).is_ok(), "32 with it, half");
        assert!([&second, &third, &fourth].iter().all(|large| large.costs(8, somebody).is_ok()), "53 with them");
        assert!(last.costs(5, somebody).is_err(), "57 with it, of 56");
        drop(last);
        let small: Vec<_> = (0..12).map(|_| entered(&classes, RequestClass::Point)).collect();
        assert!(small.iter().all(|small| small.costs(1, somebody).is_ok()), "64 with them");
        assert!(!has_room(&classes, RequestClass::Point));
        drop((first, second, third, fourth, small));
        assert_eq!(in_use(&classes), [0; 5]);
    }

    /// The accounts that have something counted, and how much.
    fn counted(told: &NodeResource) -> Vec<(&str, u64)> {
        told.callers.iter().map(|caller| (caller.name.as_deref().expect("a user"), caller.held)).collect()
    }

    #[test]
    fn one_account_has_half_of_a_class_alone_and_a_quarter_beside_others() {
        let bounds = ClassLimits { coordination: 16, point: 64, scan: 64, waiting: 1, arriving: 1 };
        let classes = Arc::new(RequestClasses::new(bounds));
        let enter = |name: &str| {
            let permit = classes.permit(RequestClass::Coordination);
            permit.enter(|| user(name)).map(|()| permit)
        };
        let mut places = vec![enter("ann").expect("alone"), enter("ann").expect("little is in use")];
        assert!(counted(&classes.told()[0]).is_empty(), "nothing is counted yet");
        places.extend((2..8).map(|_| enter("ann").expect("half of it")));
        let refused = enter("ann").expect_err("more than half");
        assert!(refused.detail().contains("half of the class `coordination`"), "{refused:?}");
        assert!(refused.detail().contains("a cost of 2 to 4 of the 16"), "{refused:?}");
        for name in ["bob", "cid"] {
            places.extend([enter(name).expect("room for others"), enter(name).expect("room for others")]);
        }
        assert!(enter("bob").is_err(), "it has its share beside what was not counted");
        let told = classes.told();
        assert_eq!(counted(&told[0]), [("ann", 6), ("bob", 2), ("cid", 2)]);
        let told = &told[0];
        assert_eq!((told.bound, told.share, told.taken, told.refused, told.share_refused), (16, 4, 12, 0, 2));
        let numbers = &classes.numbers()[0];
        assert_eq!((numbers.resource, numbers.amounts.of_one, numbers.amounts.taken), ("coordination", 4, 12));
        drop(places);
        assert_eq!((counted(&classes.told()[0]), in_use(&classes)), (vec![], vec![0; 5]));
        assert!(enter("bob").is_ok());
    }

    #[test]
    fn what_a_request_costs_is_on_its_account_wherever_it_goes_on_and_not_while_it_waits() {
        let bounds = ClassLimits { coordination: 16, point: 64, scan: 64, waiting: 1, arriving: 1 };
        let classes = Arc::new(RequestClasses::new(bounds));
        let begin = |class, name: &str| {
            let permit = classes.permit(class);
            permit.enter(|| user(name)).expect("there is room");
            permit
        };
        let (ann, bob) = (begin(RequestClass::Scan, "ann"), begin(RequestClass::Scan, "bob"));
        assert!(ann.costs(31, || user("ann")).is_ok(), "half of it with the other one");
        assert!(bob.costs(9, || user("bob")).is_err(), "more than half, and its share is 8 beside what is not counted");
        drop(bob);
        let cid = begin(RequestClass::Point, "cid");
        assert!(cid.costs(8, || user("cid")).is_ok());
        assert!(cid.move_to(RequestClass::Scan, || user("cid")).is_ok(), "it has its share of the other class, too");
        let dan = begin(RequestClass::Point, "dan");
        assert!(dan.costs(9, || user("dan")).is_ok() && dan.move_to(RequestClass::Scan, || user("dan")).is_err());
        assert_eq!(
            (dan.class(), in_use(&classes)),
            (RequestClass::Point, vec![0, 9, 39, 0, 0]),
            "it stays where it was"
        );
        assert_eq!(counted(&classes.told()[2]), [("ann", 31), ("cid", 8)]);
        let waiting = ann.wait(|| user("ann")).expect("one may wait");
        assert_eq!(counted(&classes.told()[2]), [("cid", 8)]);
        drop(waiting);
        assert_eq!(counted(&classes.told()[2]), [("ann", 31), ("cid", 8)]);
        drop((ann, cid, dan));
        assert_eq!((counted(&classes.told()[2]), in_use(&classes)), (vec![], vec![0; 5]));
    }

    #[test]
    fn what_waited_is_on_its_account_as_it_goes_on_though_little_was_in_use_as_it_came() {
        let bounds = ClassLimits { coordination: 16, point: 64, scan: 64, waiting: 12, arriving: 1 };
        let classes = Arc::new(RequestClasses::new(bounds));
        let permits: Vec<_> = (0..12).map(|_| classes.permit(RequestClass::Coordination)).collect();
        let mut waiting = Vec::new();
        for permit in &permits {
            permit.enter(|| user("ann")).expect("nothing is in use");
            waiting.push(permit.wait(|| user("ann")).expect("all may wait"));
        }
        assert_eq!((counted(&classes.told()[0]), in_use(&classes)), (vec![], vec![0, 0, 0, 12, 0]));
        drop(waiting);
        assert_eq!((counted(&classes.told()[0]), in_use(&classes)), (vec![("ann", 12)], vec![12, 0, 0, 0, 0]));
        let late = classes.permit(RequestClass::Coordination);
        assert!(late.enter(|| user("ann")).is_err(), "it has more than its share");
        assert!(late.enter(|| user("bob")).is_ok(), "others have theirs");
        drop((permits, late));
        assert_eq!((counted(&classes.told()[0]), in_use(&classes)), (vec![], vec![0; 5]));
    }

    #[test]
    fn who_waits_takes_no_place_in_its_lane() {
        let classes = classes();
        let places: Vec<_> = (0..2).map(|_| entered(&classes, RequestClass::Coordination)).collect();
        let waiting = places[0].wait(somebody).expect("one may wait");
        assert!(has_room(&classes, RequestClass::Coordination));
        assert!(places[1].wait(somebody).is_none(), "only one may");
        drop(waiting);
        assert!(!has_room(&classes, RequestClass::Coordination));
        drop(places);
        assert_eq!(in_use(&classes), [0; 5]);
    }

    #[test]
    fn who_goes_on_in_another_class_takes_nothing_of_its_own() {
        let classes = classes();
        let [one, other] = [(); 2].map(|()| entered(&classes, RequestClass::Point));
        assert!(one.costs(3, somebody).is_ok() && one.move_to(RequestClass::Scan, somebody).is_ok());
        assert_eq!((one.class(), in_use(&classes)), (RequestClass::Scan, vec![0, 1, 3, 0, 0]));
        assert!(other.costs(2, somebody).is_ok() && other.move_to(RequestClass::Scan, somebody).is_err(), "5 of 4");
        assert_eq!((other.class(), in_use(&classes)), (RequestClass::Point, vec![0, 2, 3, 0, 0]));
        // Whoever waits has no place in the class that it goes on in, either.
        let waiting = one.wait(somebody).expect("one may wait");
        assert_eq!(in_use(&classes), [0, 2, 0, 1, 0]);
        drop(waiting);
        assert_eq!(in_use(&classes), [0, 2, 3, 0, 0]);
        drop((one, other));
        assert_eq!(in_use(&classes), [0; 5]);
    }

    #[test]
    fn the_advice_follows_the_load() {
        let classes = classes();
        assert_eq!(classes.room_in(RequestClass::Point), Duration::from_millis(limits::RETRY_AFTER_MS_MIN));
        (0..100).for_each(|_| classes.observe(RequestClass::Point, Duration::from_millis(3_000)));
        let slow = classes.room_in(RequestClass::Point);
        assert!(slow > Duration::from_millis(2_900) && slow <= Duration::from_millis(3_000), "{slow:?}");
        (0..100).for_each(|_| classes.observe(RequestClass::Point, Duration::ZERO));
        assert_eq!(classes.room_in(RequestClass::Point), Duration::from_millis(limits::RETRY_AFTER_MS_MIN));
        assert_eq!(classes.room_in(RequestClass::Scan), Duration::from_millis(limits::RETRY_AFTER_MS_MIN));
    }
}
