//! The client and the command line against nodes that fail as told.

mod bench;
mod calls;
mod commands;
mod fake;
mod leaders;
mod held;
mod load;
mod locks;
mod many;
mod sessions;
mod streams;
mod updates;
