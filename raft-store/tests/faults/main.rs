//! The log and the state store at failpoints. A failpoint is one of the whole process, so these tests have a program of their own, and each of
//! them a scenario, which lets one run at a time.
#![cfg(debug_assertions)]

mod log;
#[allow(dead_code, reason = "the other programs use the rest")]
#[path = "../store/log_common/mod.rs"]
mod log_common;
mod snapshot;
#[allow(dead_code, reason = "the other programs use the rest")]
#[path = "../store/state_support/mod.rs"]
mod state_support;
