//! Calls of etcd's v3 API, and what etcd answers them.
//!
//! Owns the cases: each makes calls and notes what comes back. What a real etcd answered is kept beside them, and what a server of
//! Quorate answers is compared with it, field by field. Never knows how a server is started.

mod case;
pub mod cases;
pub mod client;
pub mod compare;
pub mod forms;
mod normal;
mod stream;
pub mod transcript;
