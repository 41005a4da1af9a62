//! Which port serves what.
//!
//! Owns the rule for a node that has a port of its own for metrics and administration. Never knows who asks.

use std::net::SocketAddr;

use quorate_api::{Applied, ErrorCode};

use crate::connection::door::Door;
use crate::gateway::auth::guard::Guard;
use crate::gateway::failure::Failure;

/// The port of metrics and administration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdminPort {
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether what it serves is refused at the port of clients.
    pub is_only: bool,
    /// Whether it tells its metrics whoever asks.
    pub has_open_metrics: bool,
}

/// What a request asks for, as far as it matters at which port.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Whether it works on data.
    pub is_data: bool,
    /// Who may ask.
    pub guard: Guard,
    /// Whether it is for the metrics.
    pub is_metrics: bool,
}

impl Asked {
    /// Whether only those ask for it who run the cluster. What clients need to find their way is not: status, health, limits.
    fn is_of_operators(self) -> bool {
        self.is_metrics || matches!(self.guard, Guard::Admin | Guard::Backup | Guard::Monitor)
    }
}

/// Says where to ask instead, if not here.
pub fn check(door: Door, admin: Option<&AdminPort>, asked: Asked) -> Result<(), Failure> {
    // Not as what is not there: a client that asks for an entry would take it for gone.
    let refused = |detail: String| Err(Failure::new(ErrorCode::PermissionDenied, Applied::No, detail));
    match (door, admin) {
        // Operators' work on data, as compaction, is at their port: with one of its own the other refuses it.
        (Door::Admin, _) if asked.is_data && !asked.is_of_operators() => refused(
            "this port is for metrics and administration; ask at the client port of this node (--client-listen)".into(),
        ),
        (Door::Clients, Some(admin)) if admin.is_only && asked.is_of_operators() => {
            refused(format!("this is served at another port of this node, {} (--admin-listen)", admin.address))
        }
        _ => Ok(()),
    }
}

/// Who may ask, where the port makes a difference.
pub fn guard(door: Door, admin: Option<&AdminPort>, asked: Asked) -> Guard {
    let is_open = door == Door::Admin && asked.is_metrics && admin.is_some_and(|admin| admin.has_open_metrics);
    if is_open { Guard::None } else { asked.guard }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_serves_its_own_and_says_where_the_rest_is() {
        let admin = |is_only| AdminPort { address: ([10, 0, 0, 1], 7300).into(), is_only, has_open_metrics: true };
        let asked = |is_data, guard, is_metrics| Asked { is_data, guard, is_metrics };
        let data = asked(true, Guard::Judged, false);
        let status = asked(false, Guard::Known, false);
        let (backup, metrics) = (asked(false, Guard::Backup, false), asked(false, Guard::Known, true));
        let compaction = asked(true, Guard::Admin, false);
        let is_served = |door, admin: Option<AdminPort>, asked| check(door, admin.as_ref(), asked).is_ok();
        for asked in [data, status, backup, metrics, compaction] {
            assert!(is_served(Door::Clients, None, asked) && is_served(Door::Clients, Some(admin(false)), asked));
        }
        assert!(
            is_served(Door::Clients, Some(admin(true)), data) && is_served(Door::Clients, Some(admin(true)), status)
        );
        for asked in [backup, metrics, compaction] {
            let refused = check(Door::Clients, Some(&admin(true)), asked).expect_err("another port serves it");
            assert!(format!("{refused:?}").contains("10.0.0.1:7300"), "{refused:?}");
        }
        assert!(!is_served(Door::Admin, Some(admin(false)), data));
        for (is_only, asked) in
            [false, true].into_iter().flat_map(|is| [status, backup, metrics, compaction].map(|asked| (is, asked)))
        {
            assert!(is_served(Door::Admin, Some(admin(is_only)), asked), "{asked:?}");
        }
    }

    #[test]
    fn metrics_are_open_where_that_was_said_and_nowhere_else() {
        let admin = AdminPort { address: ([10, 0, 0, 1], 7300).into(), is_only: false, has_open_metrics: true };
        let metrics = Asked { is_data: false, guard: Guard::Known, is_metrics: true };
        let closed = AdminPort { has_open_metrics: false, ..admin };
        assert_eq!(guard(Door::Admin, Some(&admin), metrics), Guard::None);
        assert_eq!(guard(Door::Admin, Some(&closed), metrics), Guard::Known);
        assert_eq!(guard(Door::Clients, Some(&admin), metrics), Guard::Known);
        assert_eq!(
            guard(Door::Admin, Some(&admin), Asked { guard: Guard::Admin, is_metrics: false, ..metrics }),
            Guard::Admin
        );
    }
}
