//! The cluster itself: its nodes and members, who may do what and how much, backups and metrics.

pub(crate) mod access;
pub(crate) mod backup;
pub(crate) mod invitations;
pub(crate) mod members;
pub(crate) mod node;
pub(crate) mod overview;
pub(crate) mod quotas;
pub(crate) mod scrape;
pub(crate) mod status;
