//! What every protocol that clients speak shares: which pages may ask, who asks, whether they may, how much is let in, and what a failure
//! is called.
//!
//! Owns the way from a checked request to the node and back: commands, fresh reads, permissions, admission, the audit log. Never knows
//! how a request or an answer looks on the wire: the crates of the protocols do. The exception is the problem document of a [`failure`], which
//! the port sends as well.

pub mod access_log;
pub mod admission;
pub mod answer_body;
pub mod api;
pub mod arrival;
pub mod audit_event;
pub mod auth;
pub mod backup;
pub mod body;
pub mod call;
pub mod caller;
pub mod caught;
pub mod decide;
pub mod door;
pub mod enter;
pub mod entry_lock;
pub mod entry_view;
pub mod failed;
pub mod failure;
pub mod freshness;
pub mod hosts;
pub mod leader_headers;
pub mod lines;
pub mod pages;
pub mod propose;
pub mod queue;
pub mod rejection;
pub mod renew;
pub mod request_ids;
pub mod scan;
pub mod task_lines;
pub mod text;
pub mod versions;
pub mod wait;
pub mod watch;
