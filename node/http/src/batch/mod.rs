//! Many operations in one request: a stream, a bulk, a transaction.
//!
//! Owns their routes and bodies. Never decides what one operation does.

pub mod bulk;
pub mod bulk_answer;
pub mod bulk_body;
pub mod line;
pub mod operation;
pub mod ops;
pub mod stream;
pub mod txn;
pub mod txn_answer;
pub mod txn_body;
