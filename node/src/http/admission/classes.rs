//! Admission of requests: lanes, each with its own bound on what its requests cost together.
//!
//! Owns the bounds, what is in use of them, and the word on when there will be room again. A lane that is full refuses its own
//! requests and nobody else's, so that no flood of reads or writes keeps a session from being renewed. On the way of a request
//! there are two atomic operations, no lock and no allocation. Never knows what a request does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::http::problem::Failure;
use crate::limits;
use crate::metrics::{MetricsSource, Sample};

/// What kind of work a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Lane {
    /// Sessions, locks, elections, barriers, latches. Others hold on to life by them.
    Coordination,
    /// Work on keys that are named: its cost is their number.
    Point,
    /// Work that looks for what it is about.
    Scan,
    /// Requests that wait for something to happen, as long as their callers wish. They take no place in their own lane meanwhile.
    Waiting,
    /// What tells of the node itself: never refused.
    Node,
}

impl Lane {
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

/// The bounds of the lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneBounds {
    /// Requests for coordination.
    pub coordination: usize,
    /// Operations on keys.
    pub point: usize,
    /// Cost of scans.
    pub scan: usize,
    /// Requests that wait.
    pub waiting: usize,
}

impl Default for LaneBounds {
    fn default() -> Self {
        Self {
            coordination: limits::COORDINATION_MAX,
            point: limits::POINT_OPS_MAX,
            scan: limits::SCAN_COST_MAX,
            waiting: limits::WAITING_MAX,
        }
    }
}

/// One lane. On a cache line of its own: another one's traffic does not slow it down.
#[derive(Debug)]
#[repr(align(64))]
struct Room {
    bound: usize,
    in_use: AtomicUsize,
    refused: AtomicU64,
    /// How long requests took of late, microseconds: a moving mean. Two that end at once may lose one of them, which is no harm.
    took: AtomicU64,
}

impl Room {
    fn new(bound: usize) -> Self {
        Self { bound, in_use: AtomicUsize::new(0), refused: AtomicU64::new(0), took: AtomicU64::new(0) }
    }
}

/// All lanes of a node.
#[derive(Debug)]
pub struct Lanes([Room; Lane::ALL.len()]);

impl Lanes {
    /// All of them empty.
    pub fn new(bounds: LaneBounds) -> Self {
        let LaneBounds { coordination, point, scan, waiting } = bounds;
        Self([coordination, point, scan, waiting, usize::MAX].map(Room::new))
    }

    fn room(&self, lane: Lane) -> &Room {
        &self.0[lane as usize]
    }

    /// Takes room for this cost, to be given back by [`Self::give_back`]. Whatever it costs, it fits into a lane that is empty.
    pub fn take(&self, lane: Lane, cost: usize) -> Result<(), Failure> {
        if self.try_take(lane, cost) {
            return Ok(());
        }
        self.give_back(lane, cost);
        Err(self.refusal(lane))
    }

    /// Takes it in any case; says whether there was room.
    fn try_take(&self, lane: Lane, cost: usize) -> bool {
        let room = self.room(lane);
        let before = room.in_use.fetch_add(cost, Ordering::Relaxed);
        before == 0 || before.saturating_add(cost) <= room.bound
    }

    /// Gives back what was taken.
    pub fn give_back(&self, lane: Lane, cost: usize) {
        self.room(lane).in_use.fetch_sub(cost, Ordering::Relaxed);
    }

    /// Takes a place for a request whose cost is 1 so far, whether there is room or not: see [`Place::check`].
    pub fn enter(self: &Arc<Self>, lane: Lane) -> Place {
        let fits = self.try_take(lane, 1);
        Place { lanes: Arc::clone(self), lane, cost: AtomicUsize::new(1), fits }
    }

    /// A request was done after this time, waits that it wished for aside.
    pub fn observe(&self, lane: Lane, took: Duration) {
        let room = self.room(lane);
        let before = room.took.load(Ordering::Relaxed);
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        // An eighth of the way, and always some: a mean that stands still would not be one.
        let step = took.abs_diff(before).div_ceil(8);
        let after = if took > before { before.saturating_add(step) } else { before - step };
        room.took.store(after, Ordering::Relaxed);
    }

    /// Counts a refusal that is told in another way.
    pub fn count_refusal(&self, lane: Lane) {
        self.room(lane).refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refusal and says what there is to say: which lane is full, and when those in it will be done.
    pub fn refusal(&self, lane: Lane) -> Failure {
        let room = self.room(lane);
        self.count_refusal(lane);
        let (name, bound) = (lane.name(), room.bound);
        let detail = match lane {
            Lane::Coordination => format!("the lane `{name}` of this node is full: it takes {bound} requests at once"),
            Lane::Point => format!("the lane `{name}` of this node is full: it takes {bound} operations at once"),
            Lane::Scan => {
                format!("the lane `{name}` of this node is full: it takes scans of {bound} units of cost at once")
            }
            Lane::Waiting => format!("the lane `{name}` of this node is full: {bound} requests may wait at once"),
            Lane::Node => "this node has no room".to_owned(),
        };
        Failure::too_many(detail).after(self.room_in(lane))
    }

    /// When those that are in a lane now will be gone. As many go in the time that one takes as are in it at once.
    fn room_in(&self, lane: Lane) -> Duration {
        let took = Duration::from_micros(self.room(lane).took.load(Ordering::Relaxed));
        let bounds = limits::RETRY_AFTER_MS_MIN..=limits::RETRY_AFTER_MS_MAX;
        took.clamp(Duration::from_millis(*bounds.start()), Duration::from_millis(*bounds.end()))
    }
}

/// What a request takes of its lane, until it is answered.
#[derive(Debug)]
pub struct Place {
    lanes: Arc<Lanes>,
    lane: Lane,
    /// Changed by its own request only.
    cost: AtomicUsize,
    fits: bool,
}

impl Place {
    /// The lane.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// Refuses a request for which there was no room.
    pub fn check(&self) -> Result<(), Failure> {
        if self.fits { Ok(()) } else { Err(self.lanes.refusal(self.lane)) }
    }

    /// The request turned out to cost so much, all in all.
    pub fn costs(&self, cost: usize) -> Result<(), Failure> {
        let own = self.cost.load(Ordering::Relaxed);
        let more = cost.saturating_sub(own);
        let room = self.lanes.room(self.lane);
        let before = room.in_use.fetch_add(more, Ordering::Relaxed);
        self.cost.store(own + more, Ordering::Relaxed);
        // Alone in its lane it may cost what it likes, or it would never be done.
        let is_alone = before <= own;
        let fits = is_alone || before.saturating_add(more) <= room.bound;
        if fits { Ok(()) } else { Err(self.lanes.refusal(self.lane)) }
    }

    /// Waits in the lane for that, and out of its own until what is returned is dropped; `None` where no more may wait.
    pub fn wait(&self) -> Option<Waiting<'_>> {
        let (lanes, lane, cost) = (&*self.lanes, self.lane, self.cost.load(Ordering::Relaxed));
        if !lanes.try_take(Lane::Waiting, 1) {
            lanes.give_back(Lane::Waiting, 1);
            return None;
        }
        lanes.give_back(lane, cost);
        Some(Waiting { lanes, lane, cost })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.lanes.give_back(self.lane, self.cost.load(Ordering::Relaxed));
    }
}

/// A request that waits. What it had of its own lane it takes again when it goes on, room or not: it was let in once.
#[derive(Debug)]
pub struct Waiting<'l> {
    lanes: &'l Lanes,
    lane: Lane,
    cost: usize,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.lanes.room(self.lane).in_use.fetch_add(self.cost, Ordering::Relaxed);
        self.lanes.give_back(Lane::Waiting, 1);
    }
}

/// The numbers of the lanes, for the metrics.
pub struct LaneSamples(pub Arc<Lanes>);

impl MetricsSource for LaneSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        type Number = fn(&Room) -> Sample;
        let numbers: [Number; 3] = [
            |room| {
                let in_use = room.in_use.load(Ordering::Relaxed) as u64;
                Sample::gauge("http_lane_in_use", "What the requests of a lane cost together at the moment", in_use)
            },
            |room| Sample::gauge("http_lane_bound", "What they may cost together", room.bound as u64),
            |room| {
                let refused = room.refused.load(Ordering::Relaxed);
                Sample::counter("http_lane_refused", "Requests and operations that found their lane full", refused)
            },
        ];
        for number in numbers {
            let bounded = Lane::ALL.into_iter().filter(|lane| *lane != Lane::Node);
            out.extend(bounded.map(|lane| number(self.0.room(lane)).labelled("lane", lane.name())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes() -> Arc<Lanes> {
        Arc::new(Lanes::new(LaneBounds { coordination: 2, point: 10, scan: 4, waiting: 1 }))
    }

    fn in_use(lanes: &Lanes) -> Vec<usize> {
        lanes.0.iter().map(|room| room.in_use.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn a_full_lane_refuses_its_own_and_nobody_else() {
        let lanes = lanes();
        let places: Vec<_> = (0..2).map(|_| lanes.enter(Lane::Coordination)).collect();
        assert!(places.iter().all(|place| place.check().is_ok()));
        let third = lanes.enter(Lane::Coordination);
        assert!(third.check().is_err());
        assert!(lanes.enter(Lane::Point).check().is_ok() && lanes.enter(Lane::Node).check().is_ok());
        drop((places, third));
        assert_eq!(in_use(&lanes), [0; 5]);
        assert!(lanes.enter(Lane::Coordination).check().is_ok());
    }

    #[test]
    fn the_cost_counts_and_one_alone_may_cost_what_it_likes() {
        let lanes = lanes();
        let large = lanes.enter(Lane::Point);
        assert!(large.costs(1_000).is_ok(), "alone");
        let other = lanes.enter(Lane::Point);
        assert!(other.check().is_err());
        drop(large);
        assert!(other.costs(8).is_ok() && lanes.take(Lane::Point, 2).is_ok());
        assert!(lanes.take(Lane::Point, 1).is_err());
        let third = lanes.enter(Lane::Point);
        assert!(third.costs(2).is_err());
        drop((other, third));
        lanes.give_back(Lane::Point, 2);
        assert_eq!(in_use(&lanes), [0; 5]);
    }

    #[test]
    fn who_waits_takes_no_place_in_its_lane() {
        let lanes = lanes();
        let places: Vec<_> = (0..2).map(|_| lanes.enter(Lane::Coordination)).collect();
        let waiting = places[0].wait().expect("one may wait");
        assert!(lanes.enter(Lane::Coordination).check().is_ok());
        assert!(places[1].wait().is_none(), "only one may");
        drop(waiting);
        assert!(lanes.enter(Lane::Coordination).check().is_err());
        drop(places);
        assert_eq!(in_use(&lanes), [0; 5]);
    }

    #[test]
    fn the_advice_follows_the_load() {
        let lanes = lanes();
        assert_eq!(lanes.room_in(Lane::Point), Duration::from_millis(limits::RETRY_AFTER_MS_MIN));
        (0..100).for_each(|_| lanes.observe(Lane::Point, Duration::from_millis(3_000)));
        let slow = lanes.room_in(Lane::Point);
        assert!(slow > Duration::from_millis(2_900) && slow <= Duration::from_millis(3_000), "{slow:?}");
        (0..100).for_each(|_| lanes.observe(Lane::Point, Duration::ZERO));
        assert_eq!(lanes.room_in(Lane::Point), Duration::from_millis(limits::RETRY_AFTER_MS_MIN));
        assert_eq!(lanes.room_in(Lane::Scan), Duration::from_millis(limits::RETRY_AFTER_MS_MIN));
    }
}
