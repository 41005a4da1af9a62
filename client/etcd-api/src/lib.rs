//! The messages of etcd's v3 API.
//!
//! Owns their numbers and their JSON, as etcd's gateway writes it: names of the protocol, defaults left out, 64-bit numbers as strings,
//! bytes in base64, enumerations by name. Never says what a message means: that is etcd's API reference.

// The fields are etcd's, and so is what they mean.
#![allow(missing_docs)]

pub mod auth;
pub mod cluster;
mod define;
pub mod election;
pub mod entry;
mod errors;
pub mod header;
mod json;
pub mod kv;
pub mod lease;
pub mod lock;
pub mod maintenance;
pub mod measure;
mod methods;
pub mod watch;

pub use errors::{Code, Error};
pub use methods::{METHODS, Method};
pub use prost::Message;
