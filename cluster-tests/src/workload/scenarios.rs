//! What is tried: which clients, which faults, what is watched, and how much has to happen.
//!
//! Owns the list that tests and the soak share. How long each takes is for them to say.

use std::time::Duration;

use rand::rngs::StdRng;

use super::Workload;
use super::accounts::Accounts;
use super::client::Manner::{self, Persistent, Pinned, Storming};
use super::driver::{Plan, Run, Staff};
use super::fleeting::Fleeting;
use super::locks::Locks;
use super::nemesis::Kind::{self, Network, Process};
use super::nemesis::{
    Faults,
    ProcessFault::{HandOver, KillAll, KillFollower, KillLeader, PauseFollower, PauseLeader},
};
use super::network_faults::NetworkFault::{
    AnswersLost, Bridge, ClientsCut, IsolateFollower, IsolateLeader, LeaderUnheard, OneWay, Resets, Slow, SlowNode,
};
use super::registers::Registers;
use super::set::Set;
use super::tasks::Tasks;
use crate::cluster::{Cluster, Settings};

/// Clients and faults that belong together.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    staff: fn() -> Vec<Staff>,
    watches: &'static [&'static str],
    /// Kinds of operations, and how many of each have to succeed before, during and after the faults.
    demands: &'static [(&'static str, u64)],
    faults: &'static [Kind],
}

/// How long a run takes.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long nothing is wrong at first.
    pub before: Duration,
    /// How long faults are caused.
    pub during: Duration,
    /// How long nothing is wrong in the end.
    pub after: Duration,
    /// Fewest faults.
    pub faults_min: u64,
}

impl Pace {
    /// About twenty seconds.
    pub const SHORT: Self = Self {
        before: Duration::from_secs(2),
        during: Duration::from_secs(12),
        after: Duration::from_secs(3),
        faults_min: 3,
    };
}

fn staff(workload: impl Workload + 'static, clients: usize, manner: Manner) -> Staff {
    Staff { workload: Box::new(workload), clients, manner }
}

/// All of them.
pub const SCENARIOS: [Scenario; 9] = [
    Scenario {
        name: "registers",
        staff: || {
            let free = staff(Registers { name: "registers" }, 5, Persistent);
            vec![free, staff(Registers { name: "pinned" }, 3, Pinned)]
        },
        watches: &["", "registers/one/"],
        demands: &[("get", 10), ("put", 5), ("cas", 3), ("bulk", 3), ("list", 3)],
        faults: &[Process(KillLeader), Process(PauseLeader), Process(KillFollower)],
    },
    Scenario {
        name: "accounts",
        staff: || vec![staff(Accounts, 4, Persistent), staff(Accounts, 2, Pinned), staff(Set, 3, Persistent)],
        watches: &["accounts/", "", "set/"],
        demands: &[("txn", 10), ("list", 5), ("find", 2), ("insert", 5)],
        faults: &[Process(KillLeader), Process(PauseLeader), Process(KillAll)],
    },
    Scenario {
        name: "locks",
        staff: || vec![staff(Locks, 8, Persistent), staff(Fleeting, 4, Persistent)],
        watches: &["locks/"],
        demands: &[("acquire", 5), ("renew", 3), ("put", 3)],
        faults: &[Process(PauseLeader), Process(PauseLeader), Process(KillLeader), Process(HandOver)],
    },
    Scenario {
        name: "watches",
        staff: || {
            let registers = staff(Registers { name: "registers" }, 4, Persistent);
            vec![registers, staff(Accounts, 2, Persistent), staff(Fleeting, 2, Persistent)]
        },
        watches: &["", "", "", "accounts/", "registers/many/", "fleeting/"],
        demands: &[("put", 3), ("txn", 3)],
        faults: &[Process(KillLeader), Process(KillFollower), Process(PauseFollower), Process(HandOver)],
    },
    Scenario {
        name: "storm",
        staff: || {
            let registers = staff(Registers { name: "storm" }, 4, Storming);
            vec![registers, staff(Accounts, 2, Storming), staff(Locks, 2, Storming), staff(Tasks, 2, Storming)]
        },
        watches: &[""],
        demands: &[("put", 3), ("bulk", 3), ("txn", 3)],
        faults: &[Process(KillLeader), Process(PauseLeader)],
    },
    Scenario {
        name: "tasks",
        staff: || vec![staff(Tasks, 6, Persistent)],
        watches: &[],
        demands: &[("schedule", 5), ("claim", 5), ("complete", 5)],
        faults: &[Process(KillLeader), Process(PauseLeader), Process(KillFollower)],
    },
    Scenario {
        name: "partitions",
        staff: || {
            let free = staff(Registers { name: "registers" }, 4, Persistent);
            let pinned = staff(Registers { name: "pinned" }, 2, Pinned);
            vec![free, pinned, staff(Accounts, 2, Persistent), staff(Set, 2, Persistent)]
        },
        watches: &["", "accounts/"],
        demands: &[("get", 5), ("put", 3), ("txn", 3)],
        faults: &[
            Network(IsolateLeader),
            Network(IsolateFollower),
            Network(Bridge),
            Network(OneWay),
            Network(LeaderUnheard),
            Network(Slow),
        ],
    },
    Scenario {
        name: "links",
        staff: || {
            let storm = staff(Registers { name: "storm" }, 3, Storming);
            vec![storm, staff(Locks, 5, Persistent), staff(Tasks, 3, Persistent)]
        },
        watches: &[""],
        demands: &[("put", 2), ("acquire", 1), ("claim", 1)],
        faults: &[
            Network(AnswersLost),
            Network(ClientsCut),
            Network(Resets),
            Network(SlowNode),
            Network(IsolateLeader),
        ],
    },
    Scenario {
        name: "everything",
        staff: || {
            let free = staff(Registers { name: "registers" }, 2, Persistent);
            let pinned = staff(Registers { name: "pinned" }, 2, Pinned);
            let storm = staff(Registers { name: "storm" }, 1, Storming);
            let coordination =
                [staff(Locks, 3, Persistent), staff(Tasks, 2, Persistent), staff(Fleeting, 2, Persistent)];
            let data = [free, pinned, storm, staff(Accounts, 2, Persistent), staff(Set, 2, Persistent)];
            data.into_iter().chain(coordination).collect()
        },
        watches: &["", "accounts/", "set/"],
        demands: &[("get", 2), ("put", 2), ("txn", 2)],
        faults: &[
            Process(KillLeader),
            Process(KillFollower),
            Process(KillAll),
            Process(PauseLeader),
            Process(PauseFollower),
            Process(HandOver),
            Network(IsolateLeader),
            Network(LeaderUnheard),
            Network(OneWay),
            Network(Slow),
            Network(Resets),
            Network(AnswersLost),
        ],
    },
];

/// The scenario of this name.
pub fn named(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// Carries it out on a cluster of its own, of so many nodes.
    pub async fn run(&self, nodes: u64, pace: Pace, dice: &mut StdRng) -> Run {
        let settings = Settings::with_ids(1..=nodes);
        let needs_network = self.faults.iter().any(|kind| matches!(kind, Network(_)));
        let settings = if needs_network { settings.proxied() } else { settings };
        let mut cluster = Cluster::start_with(settings).await;
        let mut faults = Faults { choices: self.faults.to_vec(), rest_ms: 200..1_500, lasts_ms: 300..2_500 };
        let Pace { before, during, after, faults_min } = pace;
        let (watches, demands) = (self.watches.to_vec(), self.demands.to_vec());
        let plan = Plan { name: self.name, staff: (self.staff)(), watches, before, during, after, demands, faults_min };
        plan.run(&mut cluster, &mut faults, dice).await
    }
}
