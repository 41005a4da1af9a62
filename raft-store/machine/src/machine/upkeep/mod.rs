//! Work that nobody asks for: what is over by the clock, and what the leader cleans up.
//!
//! Owns when such work is done and how far it goes. Each feature knows itself what there is to do.
//!
//! Golden scripts, in `testscripts/machine`: `expiry`, `compaction`.

pub(super) mod maintain;
mod timers;
