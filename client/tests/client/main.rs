//! The client against nodes that fail as told.

mod blocks;
mod calls;
mod clusters;
mod credentials;
mod examples;
mod fake;
mod history;
mod leaders;
mod library;
mod locks;
mod many;
mod mirrors;
mod public_api;
mod sessions;
mod spans;
mod streams;
mod updates;
mod watches;
mod workers;

/// How long a call has that is to be given up after it was sent, where other tests have the processors meanwhile.
const SOON: std::time::Duration = std::time::Duration::from_millis(300);
