//! What is tried: clients and faults that belong together, and how long each takes.
//!
//! Owns carrying one out on a cluster of its own. The list that tests and the soak share is in `list`.

mod list;

use std::ops::Range;
use std::time::Duration;

use rand::rngs::StdRng;

pub use list::{SCENARIOS, SLICES};

use super::aged::Age;
use super::client::Manner;
use super::driver::{Plan, Run, Staff};
use super::nemesis::{FaultPace, Faults, Kind};
use crate::cluster::{Cluster, Settings};
use cluster_histories::record::Micros;
use cluster_histories::workload::Workload;

/// Clients and faults that belong together.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    staff: fn() -> Vec<Staff>,
    watches: &'static [&'static str],
    /// Kinds of operations, and how many of each have to succeed before, during and after the faults.
    requirements: &'static [(&'static str, u64)],
    faults: &'static [Kind],
    /// Whether slow disks and links are combined with the faults.
    has_backdrops: bool,
    /// How many clients write much, beside those whose operations are judged.
    large_clients: usize,
    /// How many have the cluster tell the time.
    time_clients: usize,
    /// Flags of all nodes.
    flags: &'static [(&'static str, u64)],
    /// Whether the cluster has run for long. Its leader has to stay: none of the faults may be one of leaders.
    is_old: bool,
}

/// How long a run takes, and how fast it goes.
#[derive(Debug, Clone)]
pub struct Pace {
    /// How long nothing is wrong at first, at least.
    pub before: Duration,
    /// How long faults are caused, at least.
    pub during: Duration,
    /// How long nothing is wrong in the end, at least.
    pub after: Duration,
    /// How much longer each of these may take until what is demanded has happened.
    pub grace: Duration,
    /// What is added to the time that the cluster may take to go on after the faults.
    pub slack: Duration,
    /// The time between two faults, in milliseconds.
    pub rest_ms: Range<u64>,
    /// How long one fault takes, in milliseconds, if it does not end by itself.
    pub lasts_ms: Range<u64>,
    /// How long a client does nothing between two operations.
    pub think: Range<Micros>,
}

impl Pace {
    /// As long as it takes to meet each fault once, about fifteen seconds; clients that leave something for other tests' nodes. Test
    /// suites run on machines that are busy: they get more time to go on than is promised, which soaks and simulations hold them to.
    pub fn short() -> Self {
        Self {
            before: Duration::from_secs(1),
            during: Duration::from_secs(5),
            after: Duration::from_millis(1_500),
            grace: Duration::from_secs(20),
            slack: Duration::from_secs(10),
            rest_ms: 50..500,
            lasts_ms: 300..1_200,
            think: 2_000..20_000,
        }
    }

    /// Of a soak that hurts each cluster for so long.
    pub fn soak(during: Duration) -> Self {
        Self {
            before: Duration::from_secs(1),
            during,
            after: Duration::from_secs(3),
            slack: Duration::ZERO,
            rest_ms: 50..1_000,
            lasts_ms: 200..2_500,
            think: 200..2_500,
            ..Self::short()
        }
    }
}

/// How long a client of an old cluster rests: such a run may last for hours, and all of it is kept.
const THINK_OF_OLD: Range<Micros> = 20_000..200_000;

/// What is added to the grace for each fault, on a machine that is busy with other things.
const EACH_FAULT: Duration = Duration::from_secs(4);

fn staff(workload: impl Workload + 'static, clients: usize, manner: Manner) -> Staff {
    Staff { workload: Box::new(workload), clients, manner }
}

/// The scenario of this name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().chain(&SLICES).find(|scenario| scenario.name == name)
}

impl Scenario {
    /// The names of its workloads.
    pub fn workloads(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = (self.staff)().iter().map(|staff| staff.workload.name()).collect();
        names.dedup();
        names
    }

    /// The pace at which an old cluster is looked at: its nodes are to have time for what they do by themselves.
    fn pace_of(&self, pace: Pace) -> Pace {
        if !self.is_old {
            return pace;
        }
        let rest_max = u64::try_from(pace.during.as_millis() / 10).unwrap_or(u64::MAX).max(2_000);
        Pace { rest_ms: 1_000..rest_max, think: THINK_OF_OLD, ..pace }
    }

    /// Carries it out on a cluster of its own, of so many nodes. Each of its faults happens at least once.
    pub async fn run(&self, nodes: u64, pace: Pace, dice: &mut StdRng) -> Run {
        let pace = self.pace_of(pace);
        let age = self.is_old.then(Age::new);
        let settings = self.settings(nodes);
        let settings = age.as_ref().map_or(settings.clone(), |age| age.settings(settings));
        let mut cluster = Cluster::start_with(settings).await;
        let leadership = match age {
            Some(age) => Some(age.make_old(&mut cluster).await),
            None => None,
        };
        let fault_pace = FaultPace { rest_ms: pace.rest_ms, lasts_ms: pace.lasts_ms };
        let mut faults = Faults::new(self.faults, fault_pace, self.has_backdrops);
        let Pace { before, during, after, grace, slack, think, .. } = pace;
        let plan = Plan {
            name: self.name,
            staff: (self.staff)(),
            // A disk that fails is answered `internal`, as it should; and among all that can be asked for is another leader.
            api_clients: if self.is_old || self.has(|kind| matches!(kind, Kind::Disk(_))) { 0 } else { 2 },
            large_clients: self.large_clients,
            time_clients: self.time_clients,
            watches: self.watches.to_vec(),
            before,
            during,
            after,
            grace: grace + EACH_FAULT * u32::try_from(self.faults.len()).expect("few faults"),
            slack,
            requirements: self.requirements.to_vec(),
            faults_min: self.faults.len() as u64,
            has_churn: self.has(|kind| matches!(kind, Kind::Members(_))),
            think,
        };
        let run = plan.run(&mut cluster, &mut faults, dice).await;
        if let Some(leadership) = leadership {
            leadership.assert_kept(&cluster, &run, slack).await;
        }
        if !run.report.broken().is_empty() && std::env::var_os("QUORATE_KEEP").is_some() {
            println!("--- kept for QUORATE_KEEP: {}", cluster.keep().display());
        }
        run
    }

    fn settings(&self, nodes: u64) -> Settings {
        let mut settings = Settings::with_ids(1..=nodes);
        if self.has_backdrops || self.has(|kind| matches!(kind, Kind::Network(_))) {
            settings = settings.proxied();
        }
        if self.has_backdrops || self.has(|kind| matches!(kind, Kind::Disk(_) | Kind::Clock(_))) {
            settings = settings.hosted();
        }
        self.flags.iter().fold(settings, |settings, (name, value)| settings.flag(name, value))
    }

    fn has(&self, what: impl Fn(&Kind) -> bool) -> bool {
        self.faults.iter().any(what)
    }
}
