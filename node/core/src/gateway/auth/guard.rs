//! The callers that a route is for.
//!
//! Owns the kinds of them, and the permission that each kind needs. Never knows who asks.

use crate::gateway::auth::requirement::Permission;

/// The callers of a route, if authentication is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Anybody: it tells no more than that the node lives, and what it is.
    None,
    /// Everybody who is authenticated.
    Known,
    /// Users who may administer everything.
    Admin,
    /// Users who may take backups.
    Backup,
    /// Users who may see the state of the cluster.
    Monitor,
    /// Users with a permission on all that the request names, which its handler checks. Users without any are refused by the head alone.
    Judged,
    /// The owner of the session that the request names, even without any permission. Its handler checks that.
    Owned,
}

impl Guard {
    /// The permission on everything that all requests of the route need, if there is one.
    pub const fn permission(self) -> Option<Permission> {
        match self {
            Self::Admin => Some(Permission::Admin),
            Self::Backup => Some(Permission::Backup),
            Self::Monitor => Some(Permission::Monitor),
            Self::None | Self::Known | Self::Judged | Self::Owned => None,
        }
    }

    /// Whether each request goes into the audit log, not just what was refused.
    pub const fn is_noted(self) -> bool {
        matches!(self, Self::Admin | Self::Backup | Self::Monitor)
    }
}
