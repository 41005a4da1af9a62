//! The client and the command line against nodes that fail as told.

mod bench;
mod calls;
mod commands;
mod fake;
mod leaders;
mod load;
mod many;
mod streams;
mod updates;
mod watches;
