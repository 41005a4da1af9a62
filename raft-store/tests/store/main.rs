//! The log, the state store and their adapters, on real files. No test here starts a process: a lock on a file is held by each
//! child as well until that runs its own program.

mod codec_round_trips;
mod log_common;
mod log_damage;
mod log_model;
mod log_storage;
mod offline;
mod offline_survivor;
mod replay;
mod start;
mod state_access;
mod state_audit;
mod state_coordination;
mod state_cost;
mod state_counts;
mod state_declared;
mod state_feed;
mod state_find;
mod state_many;
mod state_quotas;
mod state_reads;
mod state_snapshot;
mod state_support;
mod state_traces;
mod suite;
