//! What can be done to a simulated cluster, and how it is taken back.
//!
//! Owns each kind, its cause and its cure. Never decides when.

use std::ops::Range;

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::address::{CLIENTS, HostId};
use crate::cure::Cure;
use crate::world::World;

macro_rules! wounds {
    ($($(#[$doc:meta])* $wound:ident,)+) => {
        /// A kind of harm.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Wound {
            $($(#[$doc])* $wound,)+
        }

        /// All kinds.
        pub const WOUNDS: &[Wound] = &[$(Wound::$wound),+];
    };
}

wounds! {
    /// A node's process is gone; its kernel tells its peers.
    Crash,
    /// Its machine is gone without a word.
    PowerLoss,
    /// All at once.
    PowerLossOfAll,
    /// It stops as it was told to, and starts again.
    Restart,
    /// It stands still for a while, and then finds its clock ahead.
    Pause,
    /// All but the leader stand still, which leads on once they do not.
    Freeze,
    /// It is cut off from everybody.
    Isolate,
    /// The hosts fall apart in two groups; clients are in one of them.
    Partition,
    /// Nothing gets from one host to another, but the other way round.
    OneWay,
    /// Long delays between two hosts.
    Slow,
    /// Packets get lost between two hosts.
    Lossy,
    /// Its log takes long to become durable.
    SlowDisk,
    /// The next sync of its log fails: it has to end at once.
    FailingDisk,
    /// Its wall clock jumps.
    WallClock,
    /// Its clock goes too fast or too slow from now on.
    Pace,
    /// The leader is asked to hand over.
    HandOver,
    /// A node is asked for a snapshot.
    Snapshot,
    /// A node is added with a vote, or one that was added is removed.
    Members,
}

/// How long a wound lasts, milliseconds.
const LASTS: Range<u64> = 50..2_500;

impl Wound {
    /// Causes it. Gives whom it hurts, how long it lasts, and what ends it; `None` where there is nobody whom it could hurt now.
    pub fn cause(self, world: &mut World, dice: &mut StdRng) -> Option<(HostId, u64, Cure)> {
        let ids = world.awake();
        let any = *ids.choose(dice)?;
        let leader = world.leader().filter(|leader| ids.contains(leader)).unwrap_or(any);
        // Leaders are hit half of the time: most of what can go wrong goes wrong there.
        let node = if dice.random() { leader } else { any };
        let lasts = dice.random_range(LASTS);
        let cure = match self {
            Self::Crash => world.crash(node, false),
            Self::PowerLoss => world.crash(node, true),
            Self::PowerLossOfAll => {
                for id in ids {
                    let start = world.crash(id, true);
                    world.heal_after(dice.random_range(LASTS), start);
                }
                Cure::None
            }
            Self::Restart => {
                world.stop(node);
                Cure::None
            }
            Self::Pause => {
                world.pause(node, lasts);
                Cure::None
            }
            Self::Freeze => {
                // Whoever starts meanwhile could be heard: then it were no standstill.
                if ids.len() < 3 || !world.are_all_awake() || world.leader() != Some(leader) {
                    return None;
                }
                ids.iter().filter(|id| **id != leader).for_each(|id| world.pause(*id, lasts));
                return Some((leader, lasts, Cure::None));
            }
            Self::Isolate => world.change_links(around(node, &ids), |link| link.is_cut = true),
            Self::Partition => {
                let count = dice.random_range(1..=ids.len());
                let there: Vec<_> = ids.sample(dice, count).copied().collect();
                let here: Vec<_> = ids.iter().copied().chain([CLIENTS]).filter(|id| !there.contains(id)).collect();
                world.change_links(between(&here, &there), |link| link.is_cut = true)
            }
            Self::OneWay => {
                let others: Vec<_> = ids.iter().copied().filter(|id| *id != node).collect();
                let to = *others.choose(dice)?;
                world.change_links(vec![(node, to)], |link| link.is_cut = true)
            }
            Self::Slow => {
                let delay = dice.random_range(5_000..250_000);
                world.change_links(around(node, &ids), |link| link.delay = delay / 4..delay)
            }
            Self::Lossy => {
                let loss = dice.random_range(10..400);
                world.change_links(around(node, &ids), |link| link.loss = loss)
            }
            Self::SlowDisk => world.slow_disk(node, dice.random_range(5_000..400_000)),
            Self::FailingDisk => world.fail_disk(node),
            Self::WallClock => world.jump_wall(node, dice.random_range(-3_600_000_000_000..3_600_000_000_000)),
            Self::Pace => world.set_pace(node, dice.random_range(950..1_010)),
            Self::HandOver => world.hand_over(any),
            Self::Snapshot => world.snapshot(node),
            Self::Members => world.change_members()?,
        };
        Some((node, lasts, cure))
    }
}

/// Both directions between a host and all others, clients included.
fn around(one: HostId, all: &[HostId]) -> Vec<(HostId, HostId)> {
    let others = all.iter().copied().chain([CLIENTS]).filter(|other| *other != one);
    others.flat_map(|other| [(one, other), (other, one)]).collect()
}

fn between(here: &[HostId], there: &[HostId]) -> Vec<(HostId, HostId)> {
    here.iter().flat_map(|one| there.iter().flat_map(move |other| [(*one, *other), (*other, *one)])).collect()
}
