//! What the machine's tests share: text forms of rows and commands, beside the store that checks itself, which is
//! `quorate-crossing`'s.
#![allow(dead_code, unused_imports, reason = "each test binary uses a part")]

pub mod access;
pub mod coordination;
pub mod memory;
pub mod model;
pub mod show;
pub mod tasks;

pub use quorate_crossing::store::{Answers, Store, assert_cuts_agree, batch};
