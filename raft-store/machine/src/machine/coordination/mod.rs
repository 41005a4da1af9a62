//! Commands about sessions, locks, elections, barriers and latches.
//!
//! Owns what sessions do to each other, and what ends with one.
//!
//! Golden scripts, in `testscripts/machine`: `sessions`, `session_locks`, `lock_queue`, `lock_modes`, `lock_owners`, `hangups`,
//! `elections`, `gates`.

mod barriers;
mod guard;
mod latches;
mod lock_queue;
mod sessions;
