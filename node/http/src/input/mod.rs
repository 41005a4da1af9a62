//! What requests bring: headers, parameters, conditions, keys and bodies.
//!
//! Owns how each is read and what is said of one that is wrong. Never asks the node for anything.

pub mod accept;
pub mod body;
pub mod conditions;
pub mod consistency;
pub mod criteria;
pub mod cursor;
pub mod etags;
pub mod extract;
pub mod json;
pub mod json_body;
pub mod key;
pub mod part;
