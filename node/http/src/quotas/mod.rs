//! Quotas: of principals, of every principal without one, and of all names with a prefix.
//!
//! Owns their routes. What counts against one, and what is beyond it, is decided where commands are applied.

mod body;
pub mod default;
pub mod prefixes;
pub mod principals;
