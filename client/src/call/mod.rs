//! Calls: what one says before it is sent, and what comes of it.
//!
//! Owns what all rooms speak of: operations, values, conditions, request ids, nodes to ask, and errors. Sends nothing.

pub(crate) mod criteria;
pub(crate) mod endpoints;
pub(crate) mod error;
pub(crate) mod loss;
pub(crate) mod moment;
pub(crate) mod op;
pub(crate) mod operation;
pub(crate) mod reason;
pub(crate) mod request;
pub(crate) mod request_id;
pub(crate) mod subject;
pub(crate) mod value;
