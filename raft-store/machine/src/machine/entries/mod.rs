//! Commands about entries: writes of one and of many, and the locks on entries.
//!
//! Owns what is done to an entry, a file for each kind of command. All of them change rows by way of `write`.
//!
//! Golden scripts, in `testscripts/machine`: `life_cycle`, `conditions`, `precedence`, `criteria`, `patch`, `expiry`, `locks`, `bulk`,
//! `lock_keys`, `txn`, `where`, `claims`, `great_numbers`.

mod bulk;
mod find;
mod lock;
mod ranges;
mod txn;
mod write;
