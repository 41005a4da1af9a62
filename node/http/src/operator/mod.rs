//! What operators ask: the cluster, its members, faults, backups, health, the API itself.
//!
//! Owns their routes. Never touches an entry.

pub mod backup;
pub mod cluster;
pub mod console;
pub mod errors;
pub mod faults;
pub mod health;
pub mod invitations;
pub mod members;
pub mod node;
pub mod openapi;
pub mod schema;
