//! The client against nodes that fail as told.

mod calls;
mod fake;
mod leaders;
mod locks;
mod many;
mod sessions;
mod streams;
mod updates;
mod watches;
mod workers;
