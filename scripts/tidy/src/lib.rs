//! Rules of this repository, which no compiler holds.
//!
//! Owns the graph of imports between files. Needs no crate but the standard library, so that its tests, which are the rules, run within
//! seconds.

mod circles;
mod modules;
mod repository;
mod source;

pub use circles::{Imports, circles};
pub use modules::Modules;
pub use repository::{Repository, root};
