//! The scenarios by name.
//!
//! Owns which clients, which faults, what is watched, and how much has to happen.

use super::{Scenario, staff};
use crate::drive::client::Manner::{Etcd, Persistent, Pinned, Storming};
use crate::drive::clock_faults::ClockFault::{AllStrobe, FollowerJumps, LeaderJumps};
use crate::drive::disk_faults::DiskFault::{
    Full, NoRoom, ShortWrites, SlowAll, SlowFollower, SlowLeader, SyncFails, SyncFailsOnce, WriteFails,
};
use crate::drive::driver::Staff;
use crate::drive::member_faults::MemberFault::{
    Backup, GrowAndShrink, ReplaceAndKill, ReplaceDead, ReplaceFollower, ReplaceLeader,
};
use crate::drive::nemesis::Kind::{self, Clock, Disk, Members, Network, Process};
use crate::drive::network_faults::NetworkFault::{
    AnswersLost, Bridge, ClientsCut, IsolateFollower, IsolateLeader, LeaderUnheard, OneWay, Resets, Slow, SlowNode,
};
use crate::drive::process_faults::ProcessFault::{
    HandOver, KillAll, KillFollower, KillLeader, PauseFollower, PauseLeader,
};
use cluster_histories::workload::Workload;
use cluster_histories::workload::accounts::Accounts;
use cluster_histories::workload::counters::Counters;
use cluster_histories::workload::etcd_registers::EtcdRegisters;
use cluster_histories::workload::fleeting::Fleeting;
use cluster_histories::workload::locks::Locks;
use cluster_histories::workload::registers::Registers;
use cluster_histories::workload::set::Set;
use cluster_histories::workload::tasks::Tasks;

/// What a scenario has that says nothing of it.
const QUIET: Scenario = Scenario {
    name: "",
    staff: Vec::new,
    watches: &[],
    requirements: &[],
    faults: &[],
    has_backdrops: false,
    large_clients: 0,
    time_clients: 0,
    flags: &[],
    is_old: false,
};

/// Clients that ask another node where one does not answer.
fn steady(workload: impl Workload + 'static, clients: usize) -> Staff {
    staff(workload, clients, Persistent)
}

/// Registers of clients that go to any node.
fn free(clients: usize) -> Staff {
    steady(Registers { name: "registers" }, clients)
}

/// Registers of clients that stay with one node each.
fn pinned(clients: usize) -> Staff {
    staff(Registers { name: "pinned" }, clients, Pinned)
}

/// Registers of clients that send each request several times.
fn storm(clients: usize) -> Staff {
    staff(Registers { name: "storm" }, clients, Storming)
}

/// Each node takes snapshots all the time, and who was away for a second needs one.
const SNAPSHOTS_OFTEN: &[(&str, u64)] = &[("--snapshot-every-entries", 200), ("--keep-log-entries", 50)];

const DISKS: &[Kind] = &[
    Disk(SlowLeader),
    Disk(SlowFollower),
    Disk(SlowAll),
    Disk(SyncFailsOnce),
    Disk(SyncFails),
    Disk(WriteFails),
    Disk(Full),
    Disk(NoRoom),
    Disk(ShortWrites),
];

const CLOCKS: &[Kind] =
    &[Clock(LeaderJumps), Clock(FollowerJumps), Clock(AllStrobe), Process(HandOver), Process(KillLeader)];

const WRONG_CLOCK: &[Kind] =
    &[Clock(LeaderJumps), Clock(FollowerJumps), Process(HandOver), Process(KillLeader), Process(PauseLeader)];

const MEMBERS: Scenario = Scenario {
    name: "members",
    staff: || vec![free(3), steady(Accounts, 2), steady(Set, 2), steady(Locks, 2)],
    watches: &["", "accounts/"],
    requirements: &[("get", 5), ("put", 3), ("txn", 3)],
    faults: &[
        Members(ReplaceFollower),
        Members(ReplaceLeader),
        Members(ReplaceDead),
        Members(ReplaceAndKill),
        Members(GrowAndShrink),
        Members(Backup),
    ],
    ..QUIET
};

/// Those of the test suite that meet in one run what the soak does in several. With `partitions`, `links`, `disks` and `clocks`
/// of [`SCENARIOS`] they meet each workload and each fault.
pub const SLICES: [Scenario; 3] = [
    Scenario {
        name: "processes",
        staff: || vec![free(3), pinned(2), steady(Accounts, 2), steady(Set, 2), steady(Counters, 2)],
        watches: &["", "registers/one/", "accounts/", "set/"],
        requirements: &[
            ("get", 10),
            ("local", 5),
            ("lock", 1),
            ("lock_wait", 1),
            ("adjust", 2),
            ("put", 5),
            ("cas", 3),
            ("bulk", 3),
            ("list", 3),
            ("txn", 10),
            ("find", 2),
            ("insert", 5),
        ],
        faults: &[
            Process(KillLeader),
            Process(KillFollower),
            Process(KillAll),
            Process(PauseLeader),
            Process(PauseFollower),
        ],
        ..QUIET
    },
    Scenario {
        name: "coordination",
        staff: || vec![steady(Locks, 5), staff(Locks, 1, Storming), steady(Fleeting, 2), storm(2), steady(Tasks, 4)],
        watches: &["locks/", "fleeting/", "storm/"],
        requirements: &[("acquire", 3), ("renew", 3), ("put", 3), ("schedule", 3), ("claim", 3), ("complete", 2)],
        faults: &[Process(PauseLeader), Process(KillLeader), Process(HandOver), Process(KillFollower)],
        ..QUIET
    },
    Scenario { name: "churn", flags: SNAPSHOTS_OFTEN, ..MEMBERS },
];

/// All of the soak.
pub const SCENARIOS: [Scenario; 17] = [
    Scenario {
        name: "registers",
        staff: || vec![free(5), pinned(3), steady(Counters, 2)],
        watches: &["", "registers/one/"],
        requirements: &[
            ("get", 10),
            ("local", 5),
            ("lock", 1),
            ("lock_wait", 1),
            ("adjust", 2),
            ("put", 5),
            ("cas", 3),
            ("bulk", 3),
            ("list", 3),
        ],
        faults: &[Process(KillLeader), Process(PauseLeader), Process(KillFollower)],
        ..QUIET
    },
    Scenario {
        name: "accounts",
        staff: || vec![steady(Accounts, 4), staff(Accounts, 2, Pinned), steady(Set, 3)],
        watches: &["accounts/", "", "set/"],
        requirements: &[("txn", 10), ("list", 5), ("find", 2), ("insert", 5)],
        faults: &[Process(KillLeader), Process(PauseLeader), Process(KillAll)],
        ..QUIET
    },
    Scenario {
        name: "locks",
        staff: || vec![steady(Locks, 8), steady(Fleeting, 4)],
        watches: &["locks/"],
        requirements: &[("acquire", 5), ("renew", 3), ("put", 3)],
        faults: &[Process(PauseLeader), Process(PauseLeader), Process(KillLeader), Process(HandOver)],
        ..QUIET
    },
    Scenario {
        name: "watches",
        staff: || vec![free(4), steady(Accounts, 2), steady(Fleeting, 2)],
        watches: &["", "", "", "accounts/", "registers/many/", "fleeting/"],
        requirements: &[("put", 3), ("txn", 3)],
        faults: &[Process(KillLeader), Process(KillFollower), Process(PauseFollower), Process(HandOver)],
        ..QUIET
    },
    Scenario {
        name: "storm",
        staff: || vec![storm(4), staff(Accounts, 2, Storming), staff(Locks, 2, Storming), staff(Tasks, 2, Storming)],
        watches: &[""],
        requirements: &[("put", 3), ("bulk", 3), ("txn", 3)],
        faults: &[Process(KillLeader), Process(PauseLeader)],
        ..QUIET
    },
    Scenario {
        name: "tasks",
        staff: || vec![steady(Tasks, 6)],
        watches: &[],
        requirements: &[("schedule", 5), ("claim", 5), ("complete", 5)],
        faults: &[Process(KillLeader), Process(PauseLeader), Process(KillFollower)],
        ..QUIET
    },
    Scenario {
        name: "etcd",
        staff: || vec![staff(EtcdRegisters, 5, Etcd), steady(Accounts, 2), staff(Accounts, 3, Etcd)],
        watches: &["", "etcd/one/", "accounts/"],
        requirements: &[("get", 5), ("local", 2), ("put", 5), ("cas", 3), ("insert", 3), ("txn", 10), ("list", 3)],
        faults: &[
            Process(KillLeader),
            Process(PauseLeader),
            Process(HandOver),
            Process(KillAll),
            Network(IsolateLeader),
            Network(AnswersLost),
        ],
        ..QUIET
    },
    Scenario {
        name: "partitions",
        staff: || vec![free(4), pinned(2), steady(Accounts, 2), steady(Set, 2)],
        watches: &["", "accounts/"],
        requirements: &[("get", 5), ("put", 3), ("txn", 3)],
        faults: &[
            Network(IsolateLeader),
            Network(IsolateFollower),
            Network(Bridge),
            Network(OneWay),
            Network(LeaderUnheard),
            Network(Slow),
        ],
        ..QUIET
    },
    Scenario {
        name: "links",
        staff: || vec![storm(3), steady(Locks, 5), steady(Tasks, 3)],
        watches: &[""],
        requirements: &[("put", 2), ("acquire", 1), ("claim", 1)],
        faults: &[
            Network(AnswersLost),
            Network(ClientsCut),
            Network(Resets),
            Network(SlowNode),
            Network(IsolateLeader),
        ],
        ..QUIET
    },
    Scenario {
        name: "disks",
        staff: || vec![free(3), pinned(2), steady(Accounts, 2), steady(Set, 2), steady(Tasks, 2)],
        watches: &["", "set/"],
        requirements: &[("get", 5), ("put", 3), ("txn", 3), ("insert", 3)],
        faults: DISKS,
        ..QUIET
    },
    Scenario {
        name: "clocks",
        staff: || vec![free(2), steady(Locks, 5), steady(Fleeting, 4)],
        watches: &["locks/", "fleeting/"],
        requirements: &[("acquire", 3), ("renew", 2), ("put", 3)],
        faults: CLOCKS,
        ..QUIET
    },
    Scenario {
        // One clock at a time: a majority is right, so what is due by the wall clock comes when it was promised. The client
        // that asks for the time has names below `times/`, so nobody watches everything.
        name: "wrong-clock",
        staff: || vec![free(2), steady(Tasks, 6)],
        watches: &["registers/"],
        requirements: &[("schedule", 5), ("claim", 5), ("complete", 5)],
        faults: WRONG_CLOCK,
        time_clients: 1,
        ..QUIET
    },
    Scenario {
        // Those that write much have names below `b/`, `c/`, `q/` and `w/`, so nobody watches everything.
        name: "groupings",
        staff: || vec![free(2), steady(Accounts, 2), steady(Tasks, 2)],
        watches: &["registers/", "accounts/"],
        requirements: &[("put", 3), ("txn", 3), ("claim", 2)],
        faults: &[
            Process(KillLeader),
            Process(KillFollower),
            Process(KillAll),
            Process(PauseFollower),
            Process(HandOver),
        ],
        large_clients: 2,
        ..QUIET
    },
    MEMBERS,
    Scenario {
        name: "snapshots",
        staff: || vec![storm(2), steady(Accounts, 2), steady(Set, 2), steady(Tasks, 3)],
        watches: &["", "set/"],
        requirements: &[("put", 3), ("txn", 3), ("insert", 3)],
        faults: &[
            Process(KillFollower),
            Process(PauseFollower),
            Process(KillLeader),
            Process(HandOver),
            Members(ReplaceDead),
            Members(Backup),
        ],
        flags: SNAPSHOTS_OFTEN,
        ..QUIET
    },
    Scenario {
        // Nothing but time has hurt it, and nodes that start anew find all of it again.
        name: "aged",
        staff: || vec![free(5), steady(Locks, 3)],
        watches: &["registers/"],
        requirements: &[("get", 5), ("put", 3), ("acquire", 2)],
        faults: &[Process(KillFollower)],
        is_old: true,
        ..QUIET
    },
    Scenario {
        name: "everything",
        staff: || {
            vec![
                free(2),
                pinned(2),
                storm(1),
                steady(Accounts, 2),
                steady(Set, 2),
                steady(Locks, 4),
                steady(Tasks, 3),
                steady(Fleeting, 2),
            ]
        },
        watches: &["", "accounts/", "set/"],
        requirements: &[("get", 2), ("put", 2), ("txn", 2)],
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
            Disk(SlowLeader),
            Disk(SyncFailsOnce),
            Disk(WriteFails),
            Disk(Full),
            Disk(ShortWrites),
            Members(ReplaceFollower),
            Members(ReplaceLeader),
            Members(GrowAndShrink),
            Members(Backup),
        ],
        has_backdrops: true,
        flags: SNAPSHOTS_OFTEN,
        ..QUIET
    },
];
