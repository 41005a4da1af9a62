//! Runs: clients that do what workloads say, on a cluster that is hurt meanwhile, and how that is recorded.
//!
//! Owns who drives workloads, sends and records (`driver`, `client`), clients that no history knows (`bounded`, `crossing`, `large`, `times`), and what hurts the
//! cluster (`nemesis`). All know nodes only by number and address, so proxies may stand between. Never decides whether a rule holds.

pub mod aged;
pub mod bounded;
pub mod client;
pub mod clock_faults;
pub mod crossing;
pub mod disk_faults;
pub mod driver;
pub mod etcd_wire;
mod fault_targets;
pub mod large;
pub mod member_faults;
pub mod nemesis;
pub mod network_faults;
pub mod process_faults;
pub mod progress;
pub mod scenarios;
pub mod times;
pub mod watcher;
pub mod wire;
