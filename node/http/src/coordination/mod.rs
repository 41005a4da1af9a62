//! Sessions, locks, elections, barriers and latches.
//!
//! Owns their routes. Never decides who holds what: `apply` does.

pub mod barriers;
pub mod elections;
pub mod latches;
pub mod locks;
pub mod observe;
pub mod sessions;
