//! The nodes that a node is told to form or to join a cluster with.
//!
//! Owns the form of the list. Never says what becomes of them: `bootstrap` does.

use std::collections::BTreeMap;

use quorate_store::raft::NodeId;

/// The join list: node id to peer address. Includes this node where it is a founding member.
pub type JoinList = BTreeMap<NodeId, String>;
