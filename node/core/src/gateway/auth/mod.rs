//! Who asks, and whether they may.
//!
//! Owns the judgement of tokens, rights as this node remembers them, and the audit log. Never reads a body.

pub mod audit;
pub mod authenticator;
pub mod guard;
pub mod jwt;
pub mod known;
pub mod proof;
pub mod requirement;
pub mod root;
pub mod throttle;
pub mod who;
