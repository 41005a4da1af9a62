//! Users, roles and tokens.
//!
//! Owns their routes. Never decides who may do what: `auth` does.

pub mod check;
pub mod own;
pub mod roles;
pub mod tokens;
pub mod users;
