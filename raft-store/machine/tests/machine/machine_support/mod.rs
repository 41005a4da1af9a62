//! What the machine's tests share: text forms of rows and commands, beside the store that checks itself, which is
//! `quorate-crossing`'s.

pub mod access;
pub mod bounds;
pub mod coordination;
pub mod model;
pub mod show;
pub mod tasks;

pub use quorate_crossing::store::{Store, assert_cuts_agree, batch};
