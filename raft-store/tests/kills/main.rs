//! The log and the state store in processes that are killed, or lose their power.

mod disk;
#[allow(dead_code, reason = "the other program uses the rest")]
#[path = "../store/log_common/mod.rs"]
mod log_common;
mod log_crash;
mod state_crash;
#[allow(dead_code, reason = "the other program uses the rest")]
#[path = "../store/state_support/mod.rs"]
mod state_support;
