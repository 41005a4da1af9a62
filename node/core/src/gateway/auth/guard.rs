//! Whom a route is for.
//!
//! Owns the kinds of that, and the permission that each asks for. Never knows who asks.

use crate::gateway::auth::requirement::Permission;

/// Who may ask, where authentication is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Anybody: it tells no more than that the node lives, and what it is.
    None,
    /// Whoever says who they are.
    Known,
    /// Who may administer everything.
    Admin,
    /// Who may take backups.
    Backup,
    /// Who may see how the cluster is.
    Monitor,
    /// Who has a right on what the request names: its handler says what that is. Callers without any are refused by the head alone.
    Judged,
    /// Whose is what the request names, a session, whatever rights they have left: its handler says whose that is.
    Owned,
}

impl Guard {
    /// What it asks for on everything, where that is the same for all requests.
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
