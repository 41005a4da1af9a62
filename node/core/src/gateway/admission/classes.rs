//! Admission of requests: classes, each with its own bound on what its requests cost together.
//!
//! Owns the bounds, what is in use of them, and the word on when there will be room again. A class that is full refuses its own
//! requests and nobody else's, so that no flood of reads or writes keeps a session from being renewed. On the way of a request
//! there are two atomic operations, no lock and no allocation. Never knows what a request does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::gateway::admission::turns::Turn;
use crate::gateway::failure::Failure;
use crate::limits;
use crate::metrics::{MetricsSource, Sample};

/// What kind of work a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum RequestClass {
    /// Sessions, locks, elections, barriers, latches. Others hold on to life by them.
    Coordination,
    /// Work on keys that are named: its cost is their number.
    Point,
    /// Work that looks for what it is about.
    Scan,
    /// Requests that wait for something to happen, for as long as their callers say. They take no place in their own class meanwhile.
    Waiting,
    /// What tells of the node itself: never refused.
    Node,
}

impl RequestClass {
    /// All of them, in the order of their numbers.
    const ALL: [Self; 5] = [Self::Coordination, Self::Point, Self::Scan, Self::Waiting, Self::Node];

    /// As in the metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coordination => "coordination",
            Self::Point => "point",
            Self::Scan => "scan",
            Self::Waiting => "waiting",
            Self::Node => "node",
        }
    }
}

/// One part in so many of the class for named keys is left to requests of one operation: sixteen bulks of a thousand would fill it, and
/// whoever writes one key would be refused for as long as others come with more of them.
const POINT_LEFT_TO_SMALL: usize = 8;

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
    in_use: AtomicUsize,
    refused: AtomicU64,
    /// How long requests took of late, microseconds: a moving mean. Two that end at once may lose one of them, which is no harm.
    took: AtomicU64,
}

impl ClassLoad {
    fn new(bound: usize, left_to_small: usize) -> Self {
        let (in_use, refused, took) = Default::default();
        Self { bound, bound_of_large: bound - left_to_small, in_use, refused, took }
    }
}

/// All classes of a node.
#[derive(Debug)]
pub struct RequestClasses([ClassLoad; RequestClass::ALL.len()]);

impl RequestClasses {
    /// All of them empty.
    pub fn new(bounds: ClassLimits) -> Self {
        let ClassLimits { coordination, point, scan, waiting, arriving: _ } = bounds;
        let whole = |bound| ClassLoad::new(bound, 0);
        let point = ClassLoad::new(point, point / POINT_LEFT_TO_SMALL);
        Self([whole(coordination), point, whole(scan), whole(waiting), whole(usize::MAX)])
    }

    fn room(&self, class: RequestClass) -> &ClassLoad {
        &self.0[class as usize]
    }

    /// Takes room for this cost, to be given back by [`Self::give_back`]. Whatever it costs, it fits into a class that is empty.
    pub fn take(&self, class: RequestClass, cost: usize) -> Result<(), Failure> {
        if self.try_take(class, cost) {
            return Ok(());
        }
        self.give_back(class, cost);
        Err(self.refusal(class))
    }

    /// Takes it in any case; says whether there was room.
    fn try_take(&self, class: RequestClass, cost: usize) -> bool {
        let room = self.room(class);
        let before = room.in_use.fetch_add(cost, Ordering::Relaxed);
        before == 0 || before.saturating_add(cost) <= room.bound
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
        self.room(class).refused.fetch_add(1, Ordering::Relaxed);
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
    /// Of its address; see [`Permit::hold`].
    turn: Mutex<Option<Turn>>,
    /// Of large bodies; see [`Permit::hold_large`].
    large: Mutex<Option<Turn>>,
}

impl Permit {
    /// The class.
    pub fn class(&self) -> RequestClass {
        RequestClass::ALL[self.class.load(Ordering::Relaxed)]
    }

    /// Takes a place for a request whose cost is 1 so far.
    pub fn enter(&self) -> Result<(), Failure> {
        self.classes.take(self.class(), 1)?;
        self.cost.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Whether it has a place.
    pub fn is_held(&self) -> bool {
        self.cost.load(Ordering::Relaxed) > 0
    }

    /// Goes on in another class: takes room there for what it costs so far, and gives back what it had, its turn with it. Where there is no
    /// room it stays where it was.
    pub fn move_to(&self, class: RequestClass) -> Result<(), Failure> {
        let (before, had) = (self.class(), self.cost.load(Ordering::Relaxed));
        // A call within another one has no cost yet when it begins.
        let cost = had.max(1);
        self.classes.take(class, cost)?;
        self.class.store(class as usize, Ordering::Relaxed);
        self.cost.store(cost, Ordering::Relaxed);
        self.classes.give_back(before, had);
        drop((self.turn.lock().take(), self.large.lock().take()));
        Ok(())
    }

    /// The request turned out to cost so much, all in all.
    pub fn costs(&self, cost: usize) -> Result<(), Failure> {
        let (class, own) = (self.class(), self.cost.load(Ordering::Relaxed));
        let more = cost.saturating_sub(own);
        let room = self.classes.room(class);
        let before = room.in_use.fetch_add(more, Ordering::Relaxed);
        self.cost.store(own + more, Ordering::Relaxed);
        // Alone in its class it may cost what it likes, or it would never be done.
        let is_alone = before <= own;
        let bound = if cost > 1 { room.bound_of_large } else { room.bound };
        let fits = is_alone || before.saturating_add(more) <= bound;
        if fits { Ok(()) } else { Err(self.classes.refusal(class)) }
    }

    /// Waits in the class for that, and out of its own until what is returned is dropped; `None` where no more may wait.
    pub fn wait(&self) -> Option<Waiting<'_>> {
        let (classes, class, cost) = (&*self.classes, self.class(), self.cost.load(Ordering::Relaxed));
        if !classes.try_take(RequestClass::Waiting, 1) {
            classes.give_back(RequestClass::Waiting, 1);
            return None;
        }
        classes.give_back(class, cost);
        // Its turn, too: others are at work meanwhile.
        drop((self.turn.lock().take(), self.large.lock().take()));
        Some(Waiting { classes, class, cost })
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
    classes: &'l RequestClasses,
    class: RequestClass,
    cost: usize,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.classes.room(self.class).in_use.fetch_add(self.cost, Ordering::Relaxed);
        self.classes.give_back(RequestClass::Waiting, 1);
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

    /// A request that wants a place, and whether it has it.
    fn tried(classes: &Arc<RequestClasses>, class: RequestClass) -> (Permit, bool) {
        let permit = classes.permit(class);
        let is_in = permit.enter().is_ok();
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
    fn what_has_not_entered_takes_nothing() {
        let classes = classes();
        let heads: Vec<_> = (0..100).map(|_| classes.permit(RequestClass::Coordination)).collect();
        let waiting = heads[0].wait().expect("one may wait");
        assert_eq!(in_use(&classes), [0, 0, 0, 1, 0]);
        drop(waiting);
        assert!(heads[1].enter().is_ok() && heads[1].is_held());
        assert_eq!(in_use(&classes), [1, 0, 0, 0, 0]);
        // A call within another one begins in its class.
        assert!(heads[2].move_to(RequestClass::Scan).is_ok());
        assert_eq!(in_use(&classes), [1, 0, 1, 0, 0]);
        drop(heads);
        assert_eq!(in_use(&classes), [0; 5]);
    }

    #[test]
    fn the_cost_counts_and_one_alone_may_cost_what_it_likes() {
        let classes = classes();
        let large = entered(&classes, RequestClass::Point);
        assert!(large.costs(1_000).is_ok(), "alone");
        let (other, is_in) = tried(&classes, RequestClass::Point);
        assert!(!is_in);
        drop(large);
        assert!(other.enter().is_ok() && other.costs(8).is_ok() && classes.take(RequestClass::Point, 2).is_ok());
        assert!(classes.take(RequestClass::Point, 1).is_err());
        let third = classes.permit(RequestClass::Point);
        assert!(third.costs(2).is_err());
        drop((other, third));
        classes.give_back(RequestClass::Point, 2);
        assert_eq!(in_use(&classes), [0; 5]);
    }

    #[test]
    fn what_is_left_to_small_requests_no_large_one_takes() {
        let bounds = ClassLimits { coordination: 2, point: 16, scan: 4, waiting: 1, arriving: 1 };
        let classes = Arc::new(RequestClasses::new(bounds));
        let [first, second, third] = [(); 3].map(|()| entered(&classes, RequestClass::Point));
        assert!(first.costs(7).is_ok() && second.costs(6).is_ok());
        assert!(third.costs(2).is_err(), "15 with it, of 14");
        drop(third);
        let small: Vec<_> = (0..3).map(|_| entered(&classes, RequestClass::Point)).collect();
        assert!(small.iter().all(|small| small.costs(1).is_ok()), "16 with them");
        assert!(!has_room(&classes, RequestClass::Point));
        drop((first, second, small));
        assert_eq!(in_use(&classes), [0; 5]);
    }

    #[test]
    fn who_waits_takes_no_place_in_its_lane() {
        let classes = classes();
        let places: Vec<_> = (0..2).map(|_| entered(&classes, RequestClass::Coordination)).collect();
        let waiting = places[0].wait().expect("one may wait");
        assert!(has_room(&classes, RequestClass::Coordination));
        assert!(places[1].wait().is_none(), "only one may");
        drop(waiting);
        assert!(!has_room(&classes, RequestClass::Coordination));
        drop(places);
        assert_eq!(in_use(&classes), [0; 5]);
    }

    #[test]
    fn who_goes_on_in_another_class_takes_nothing_of_its_own() {
        let classes = classes();
        let [one, other] = [(); 2].map(|()| entered(&classes, RequestClass::Point));
        assert!(one.costs(3).is_ok() && one.move_to(RequestClass::Scan).is_ok());
        assert_eq!((one.class(), in_use(&classes)), (RequestClass::Scan, vec![0, 1, 3, 0, 0]));
        assert!(other.costs(2).is_ok() && other.move_to(RequestClass::Scan).is_err(), "5 of 4");
        assert_eq!((other.class(), in_use(&classes)), (RequestClass::Point, vec![0, 2, 3, 0, 0]));
        // Whoever waits has no place in the class that it goes on in, either.
        let waiting = one.wait().expect("one may wait");
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
