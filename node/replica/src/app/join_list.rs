//! The join list: the nodes with which a node forms a cluster, or whose cluster it joins.
//!
//! Owns the form of the list. `bootstrap` decides what follows from it.

use std::collections::BTreeMap;

use quorate_store::raft::NodeId;

/// The join list: node id to peer address. Includes this node where it is a founding member.
pub type JoinList = BTreeMap<NodeId, String>;
