//! When the groups of each queue of commands go, and how long large and dear ones wait for others afterwards.
//!
//! Owns the turns of the queues, and what each knows of the others. Known to this node alone: it decides when a group goes, and never what
//! becomes of it. Only the node that decides a group in its own log waits afterwards, since the commands of all nodes meet there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use quorate_machine::limits::BATCH_COMMANDS_MAX;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Groups of one queue on their way at once. Two keep the log busy while one waits for its quorum; more only make groups smaller,
/// and the cost of a group is what limits throughput.
const GROUPS_IN_FLIGHT_MAX: usize = 2;

/// Time after a small command in which others are likely to come; large ones go one at a time meanwhile.
const SMALL_OF_LATE: Duration = Duration::from_millis(50);

/// Longest pause after a group.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How much work the commands of a queue are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Little each.
    Small,
    /// Long ones.
    Large,
    /// Short ones that are as much work as long ones, or more.
    Dear,
}

impl Weight {
    /// Most commands of a group.
    pub fn commands_max(self) -> usize {
        match self {
            Self::Small => BATCH_COMMANDS_MAX,
            Self::Large | Self::Dear => 1,
        }
    }

    /// Length of the pause after a command, as a multiple of its own time. Others that came meanwhile had to wait for it, and now get the log, the
    /// disk and the state. Dear commands mostly come from one client that asks again at once. They have a sixteenth of the time, or more if [`PAUSE_MAX`]
    /// cuts the pause. All nodes apply them, so three nodes on two processors spend a tenth of both on them. Honest writes kept 34 % beside a tenant's
    /// dear commands when these had a quarter of the time, and 46 % when they had an eighth.
    fn pauses(self) -> u32 {
        match self {
            Self::Small => 0,
            Self::Large => 1,
            Self::Dear => 15,
        }
    }
}

/// The place that decided a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// In this node's log.
    Here,
    /// At another node, or nowhere.
    NotHere,
}

/// The groups on their way through this node, but for dear ones, for which nobody waits.
#[derive(Debug, Default)]
pub struct Traffic {
    small: Groups,
    large: Groups,
}

impl Traffic {
    fn enter(&self, weight: Weight) -> Option<UnderWay<'_>> {
        match weight {
            Weight::Small => Some(self.small.enter()),
            Weight::Large => Some(self.large.enter()),
            Weight::Dear => None,
        }
    }

    /// For how long a group that began then makes room for others, now that it was decided.
    fn pause_after(&self, weight: Weight, begun: Instant) -> Duration {
        let is_waited_for = match weight {
            Weight::Small => false,
            Weight::Large => self.small.came_since(begun),
            Weight::Dear => self.small.came_since(begun) || self.large.came_since(begun),
        };
        if is_waited_for { (begun.elapsed() * weight.pauses()).min(PAUSE_MAX) } else { Duration::ZERO }
    }
}

/// Those of one weight.
#[derive(Debug, Default)]
struct Groups {
    under_way: AtomicUsize,
    /// When the last of them ended.
    last: Mutex<Option<Instant>>,
}

impl Groups {
    fn enter(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(self)
    }

    /// Whether one is under way, or ended since then.
    fn came_since(&self, begun: Instant) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0 || self.last.lock().is_some_and(|last| last >= begun)
    }

    fn came_of_late(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
            || self.last.lock().is_some_and(|last| last.elapsed() < SMALL_OF_LATE)
    }
}

/// One group, until it is dropped.
struct UnderWay<'g>(&'g Groups);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        *self.0.last.lock() = Some(Instant::now());
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The turns of one queue.
#[derive(Debug)]
pub struct Lane {
    weight: Weight,
    traffic: Arc<Traffic>,
    in_flight: Arc<Semaphore>,
}

impl Lane {
    /// Nothing is on its way.
    pub fn new(weight: Weight, traffic: Arc<Traffic>) -> Self {
        Self { weight, traffic, in_flight: Arc::new(Semaphore::new(GROUPS_IN_FLIGHT_MAX)) }
    }

    /// How much work its commands are.
    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// Waits until the next group may go.
    pub async fn turn(&self) -> GroupTurn {
        loop {
            let places = self.places();
            let permit = self.in_flight.clone().acquire_many_owned(places).await.expect("it is never closed");
            // Small ones may have come meanwhile, which two large ones would not let through: each would pause while the other is applied.
            if self.places() <= places {
                return GroupTurn { weight: self.weight, traffic: Arc::clone(&self.traffic), _permit: permit };
            }
        }
    }

    /// How many places the next group takes: all of them, where it goes by itself.
    fn places(&self) -> u32 {
        let is_alone = match self.weight {
            Weight::Small => false,
            Weight::Large => self.traffic.small.came_of_late(),
            Weight::Dear => true,
        };
        if is_alone { GROUPS_IN_FLIGHT_MAX as u32 } else { 1 }
    }
}

/// The turn of a group. The next one has it once this is dropped.
#[derive(Debug)]
pub struct GroupTurn {
    weight: Weight,
    traffic: Arc<Traffic>,
    _permit: OwnedSemaphorePermit,
}

impl GroupTurn {
    /// Has the group decided, and lets others go before the next one.
    pub async fn take(self, decide: impl Future<Output = Decided>) {
        let begun = Instant::now();
        let under_way = self.traffic.enter(self.weight);
        let decided = decide.await;
        drop(under_way);
        let pause = self.traffic.pause_after(self.weight, begun);
        if decided == Decided::Here && !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time to apply one command. They are applied one at a time.
    const SMALL: Duration = Duration::from_millis(5);
    const DEAR: Duration = Duration::from_millis(150);

    /// A node that leads and applies.
    struct Leader {
        traffic: Arc<Traffic>,
        applying: tokio::sync::Mutex<()>,
    }

    impl Leader {
        fn new() -> Arc<Self> {
            Arc::new(Self { traffic: Arc::default(), applying: tokio::sync::Mutex::new(()) })
        }

        async fn apply(&self, takes: Duration) -> Decided {
            let _one = self.applying.lock().await;
            tokio::time::sleep(takes).await;
            Decided::Here
        }

        /// Runs clients for a while. Each sends a group, waits for the answer, and thinks. Gives the number of groups decided.
        async fn work(self: Arc<Self>, weight: Weight, takes: Duration, clients: usize, thinks: Duration) -> usize {
            const FOR: Duration = Duration::from_secs(20);
            let (lane, end) = (Arc::new(Lane::new(weight, Arc::clone(&self.traffic))), Instant::now() + FOR);
            let client = |_| {
                let (leader, lane) = (Arc::clone(&self), Arc::clone(&lane));
                tokio::spawn(async move {
                    let mut done = 0_usize;
                    while Instant::now() < end {
                        let turn = lane.turn().await;
                        let (answer, answered) = tokio::sync::oneshot::channel();
                        let applied = Arc::clone(&leader);
                        // In a task of its own, as in the queue: the pause comes after the answer.
                        tokio::spawn(turn.take(async move {
                            let decided = applied.apply(takes).await;
                            answer.send(()).expect("the client waits");
                            decided
                        }));
                        answered.await.expect("it is answered");
                        done += 1;
                        tokio::time::sleep(thinks).await;
                    }
                    done
                })
            };
            let clients: Vec<_> = (0..clients).map(client).collect();
            let mut done = 0;
            for client in clients {
                done += client.await.expect("no panic");
            }
            done
        }

        /// Small ones, of clients that ask now and then.
        async fn small(self: Arc<Self>) -> usize {
            self.work(Weight::Small, SMALL, 2, Duration::from_millis(80)).await
        }

        /// The others, of clients that ask all the time.
        async fn heavy(self: Arc<Self>, weight: Weight) -> usize {
            self.work(weight, DEAR, 8, Duration::ZERO).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn small_commands_keep_half_beside_dear_ones() {
        let alone = Leader::new().small().await;
        let leader = Leader::new();
        let (beside, dear) = tokio::join!(Arc::clone(&leader).small(), leader.heavy(Weight::Dear));
        assert!(beside * 2 >= alone, "{beside} of {alone} beside {dear} dear ones");
        // They pause for as long as any pause may be.
        assert!(dear >= 13, "{dear} dear ones beside {beside}");
    }

    #[tokio::test(start_paused = true)]
    async fn large_commands_go_beside_dear_ones_too() {
        let leader = Leader::new();
        let (large, dear) = tokio::join!(Arc::clone(&leader).heavy(Weight::Large), leader.heavy(Weight::Dear));
        assert!(large > dear && dear >= 10, "{large} large ones beside {dear} dear ones");
    }

    #[tokio::test(start_paused = true)]
    async fn dear_commands_among_themselves_do_not_pause() {
        let dear = Leader::new().heavy(Weight::Dear).await;
        assert!(dear >= 125, "{dear} dear ones of 133 for which there was time");
    }

    /// Small ones that come rarely, while two large ones are on their way already.
    #[tokio::test(start_paused = true)]
    async fn two_large_groups_do_not_take_turns_in_keeping_small_ones_out() {
        let leader = Leader::new();
        let (small, large) = tokio::join!(Arc::clone(&leader).small(), leader.heavy(Weight::Large));
        let alone = Leader::new().small().await;
        assert!(small * 3 >= alone, "{small} of {alone} beside {large} large ones");
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_node_decides_is_followed_by_no_pause() {
        const SHORT: Duration = Duration::from_millis(20);
        let traffic = Arc::new(Traffic::default());
        let lane = Lane::new(Weight::Dear, Arc::clone(&traffic));
        let _small = traffic.enter(Weight::Small);
        for (takes, decided, pause) in [
            (DEAR, Decided::NotHere, Duration::ZERO),
            (DEAR, Decided::Here, PAUSE_MAX),
            (SHORT, Decided::Here, 15 * SHORT),
        ] {
            let (turn, begun) = (lane.turn().await, Instant::now());
            let decide = async move {
                tokio::time::sleep(takes).await;
                decided
            };
            turn.take(decide).await;
            let over = begun.elapsed().checked_sub(takes + pause);
            assert!(over.is_some_and(|over| over < Duration::from_millis(5)), "{decided:?}: {:?}", begun.elapsed());
        }
    }
}
