//! What Quorate promises, tried on clusters of real processes.
//!
//! Each test starts its own cluster in its own temporary directory, and ends with all nodes agreeing on their state.

// What a user sees.
mod abuse;
mod access;
#[path = "../../../client/cli/tests/cli/agent.rs"]
mod agent;
mod agents;
mod alone;
mod archive;
mod backups;
mod barriers;
mod bulk;
mod cas;
mod claim;
mod collections;
mod contained;
mod deadlines;
mod dev;
mod entry_locks;
mod etcd;
mod exactly_once;
mod examples;
mod forms;
mod generated;
mod guide;
mod handles;
mod library;
mod locks;
mod package;
mod quotas;
mod reads;
mod sessions;
mod tasks;
mod unix_socket;
mod watch;

// Nodes that go and come back.
mod catch_up;
mod clocks;
mod contenders;
#[path = "../../../raft-store/tests/kills/disk/mod.rs"]
mod disk;
mod failover;
mod histories;
mod kept_data;
mod kubelet;
mod members;
mod namespaces;
mod newcomers;
mod power;
mod recovery;
mod restart;
mod roll;
mod rolling_upgrade;

// Disks that cannot be trusted.
mod auth;
mod check;
mod crossing;
mod damage;
mod hosts;
mod identity;
mod integrity;
mod old_state;
mod space;

// What an operator sees.
mod insight;
mod levels;
mod logging;
mod operator;
mod tls;
mod traces;
