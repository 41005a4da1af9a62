//! The client and the command line against nodes that fail as told.

mod bench;
mod calls;
mod commands;
mod fake;
mod held;
mod leaders;
mod load;
mod locks;
mod many;
mod sessions;
mod streams;
mod updates;
mod watches;
mod workers;
