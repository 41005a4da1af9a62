//! What hurts a cluster while clients are at work.
//!
//! Owns choosing a fault and when it is caused. What each kind does stands in a file of its own; whatever else can hurt implements
//! [`Nemesis`]. Never waits until the cluster is whole again: how long that takes is what is tried.

use std::ops::Range;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::clock_faults::ClockFault;
use super::disk_faults::DiskFault;
use super::fault_targets::FaultTargets;
use super::member_faults::MemberFault;
use super::network_faults::NetworkFault;
use super::process_faults::ProcessFault;
use crate::cluster::Cluster;
use crate::network::Rule;
use cluster_histories::Recorder;
use cluster_histories::record::Fault;

/// Something that hurts.
pub trait Nemesis {
    /// Does nothing for a while.
    fn rest(&mut self, dice: &mut StdRng) -> impl Future<Output = ()>;

    /// Causes one fault and undoes it. Nobody may be ready yet then, but a majority of the nodes runs and reaches each other. Gives
    /// what is to be recorded, with the moment of the undoing as its end.
    fn strike(&mut self, cluster: &mut Cluster, recorder: &Recorder, dice: &mut StdRng) -> impl Future<Output = Fault>;
}

/// What can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// To a process.
    Process(ProcessFault),
    /// To links. Needs a cluster with a network of its own: [`crate::Settings::proxied`].
    Network(NetworkFault),
    /// To disks. Needs [`crate::Settings::hosted`].
    Disk(DiskFault),
    /// To wall clocks. Needs [`crate::Settings::hosted`].
    Clock(ClockFault),
    /// To the membership.
    Members(MemberFault),
}

/// Stands in the name of a fault between what was chosen and what went on in the background.
pub const BESIDE: &str = ", ";

/// What goes on in the background while something else hurts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backdrop {
    SlowDisk,
    SlowLinks,
}

/// One fault after the other: each of the choices once, in an order by chance, then each again.
#[derive(Debug, Clone)]
pub struct Faults {
    choices: Vec<Kind>,
    pace: FaultPace,
    /// Whether faults are combined: other nodes have slow disks or slow links meanwhile, now and then.
    has_backdrops: bool,
    /// The choices of this round that are left.
    deck: Vec<Kind>,
}

/// How fast faults follow each other.
#[derive(Debug, Clone)]
pub struct FaultPace {
    /// The time between two, in milliseconds.
    pub rest_ms: Range<u64>,
    /// How long one takes that does not end by itself, in milliseconds.
    pub lasts_ms: Range<u64>,
}

impl Faults {
    /// Of these choices. Where they are combined, the cluster needs hosts and a network that can be hurt.
    pub fn new(choices: &[Kind], pace: FaultPace, has_backdrops: bool) -> Self {
        Self { choices: choices.to_vec(), pace, has_backdrops, deck: Vec::new() }
    }

    fn draw(&mut self, dice: &mut StdRng) -> Kind {
        if self.deck.is_empty() {
            self.deck.clone_from(&self.choices);
        }
        self.deck.swap_remove(dice.random_range(0..self.deck.len()))
    }
}

impl Nemesis for Faults {
    async fn rest(&mut self, dice: &mut StdRng) {
        tokio::time::sleep(Duration::from_millis(dice.random_range(self.pace.rest_ms.clone()))).await;
    }

    async fn strike(&mut self, cluster: &mut Cluster, recorder: &Recorder, dice: &mut StdRng) -> Fault {
        let kind = self.draw(dice);
        let targets = FaultTargets::choose(cluster, dice).await;
        let lasts = Duration::from_millis(dice.random_range(self.pace.lasts_ms.clone()));
        let backdrop = if self.has_backdrops { Backdrop::choose(dice) } else { None };
        let begin = recorder.now();
        if let Some(backdrop) = backdrop {
            backdrop.begin(cluster, &targets, dice);
        }
        let node = kind.cause(cluster, &targets, lasts, dice).await;
        let mut name = kind.name();
        if let Some(backdrop) = backdrop {
            backdrop.end(cluster);
            // One fault all the same: it must not stand for one of the choices.
            name = format!("{name}{BESIDE}{backdrop:?}Beside");
        }
        Fault { kind: name, node, begin, end: recorder.now() }
    }
}

impl Kind {
    /// Its name in histories.
    fn name(self) -> String {
        match self {
            Self::Process(fault) => format!("{fault:?}"),
            Self::Network(fault) => format!("{fault:?}"),
            Self::Disk(fault) => format!("{fault:?}"),
            Self::Clock(fault) => format!("{fault:?}"),
            Self::Members(fault) => format!("{fault:?}"),
        }
    }

    async fn cause(self, cluster: &mut Cluster, targets: &FaultTargets, lasts: Duration, dice: &mut StdRng) -> u64 {
        match self {
            Self::Process(fault) => fault.cause(cluster, targets, dice).await,
            Self::Network(fault) => fault.cause(cluster, targets, lasts, dice).await,
            Self::Disk(fault) => fault.cause(cluster, targets, lasts, dice).await,
            Self::Clock(fault) => fault.cause(cluster, targets, lasts, dice).await,
            Self::Members(fault) => fault.cause(cluster, targets, dice).await,
        }
    }
}

impl Backdrop {
    fn choose(dice: &mut StdRng) -> Option<Self> {
        match dice.random_range(0..4) {
            0 => Some(Self::SlowDisk),
            1 => Some(Self::SlowLinks),
            _ => None,
        }
    }

    fn begin(self, cluster: &Cluster, targets: &FaultTargets, dice: &mut StdRng) {
        let delay = Duration::from_millis(dice.random_range(3..25));
        match self {
            Self::SlowDisk => cluster.host(targets.follower).slow_disk(delay, delay, Duration::ZERO),
            Self::SlowLinks => {
                for other in targets.but(targets.follower) {
                    cluster.network().rule_both(targets.follower, other, Rule::Delay(delay));
                }
            }
        }
    }

    fn end(self, cluster: &Cluster) {
        match self {
            // Whoever was removed meanwhile has no host any more.
            Self::SlowDisk => cluster.ids().into_iter().for_each(|id| cluster.host(id).heal_disk()),
            Self::SlowLinks => cluster.network().heal(),
        }
    }
}
