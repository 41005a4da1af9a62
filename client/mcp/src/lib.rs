//! Quorate for coding agents: a server of the Model Context Protocol.
//!
//! An agent calls tools: entries with compare-and-swap, claims, locks with fencing tokens, elections, timed tasks, watches. All that it
//! holds hangs on one session of Quorate, which is opened at first need, renewed as long as the agent is connected, and ended when the agent
//! disconnects. So what a dead agent held is free once its session's time is over, and what a finished one held is free at once.
//!
//! Owns what an agent sees: the table of tools, what it holds, how refusals read, how much of an answer it gets. What happens to entries and
//! locks is the client's and the cluster's; the protocol is the SDK's.
//!
//! Order of reading: `settings` (what can be set), `server` (the protocol's side), `tool` and `table` (what tools there are), `tools` (what
//! each does, a file for each group), `agent` (the session and what hangs on it), `loss` (what went with a session that was lost), then the
//! leaves: `taking` (calls that are given up), `input` and `schema` (arguments), `scope` (the prefix), `refusal` (errors), `shown` (answers),
//! `stdio` and `http` (transports).
//!
//! # Caveats
//!
//! - Numbers pass through the protocol as 64-bit integers or floats: a number with more digits than those hold is rounded before it is here.
//! - Over HTTP an agent has a session only by versions of the protocol that have sessions, up to 2025-11-25. Over standard input and output
//!   the connection is the session, in every version.
//! - An agent that connects by HTTP and dies is noticed only once it was idle for as long as the settings say.

// `expect` says why a failure is impossible; every other error is returned. Tests may unwrap.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod agent;
mod http;
mod input;
mod loss;
mod refusal;
mod schema;
mod scope;
mod server;
mod settings;
mod shown;
mod stdio;
mod table;
mod taking;
mod tool;
mod tools;

pub use http::{HttpSettings, serve_http};
pub use settings::{ServeError, Settings};
pub use stdio::serve_stdio;
