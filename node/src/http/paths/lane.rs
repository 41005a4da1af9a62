//! What kind of work each route is.
//!
//! Owns that one table. Never judges what a single request costs.

use http::Method;

use super::Route;
use crate::http::lanes::Lane;

impl Route {
    /// The lane of its requests.
    pub fn lane(self, method: &Method) -> Lane {
        match self {
            Self::Sessions if method != Method::POST => Lane::Scan,
            Self::Sessions | Self::SessionsRenew | Self::Session | Self::SessionRenew => Lane::Coordination,
            Self::Lock | Self::LockAcquire | Self::LockRelease | Self::LockCheck => Lane::Coordination,
            Self::Election | Self::ElectionObserve => Lane::Coordination,
            Self::ElectionCampaign | Self::ElectionProclaim | Self::ElectionResign => Lane::Coordination,
            Self::Barrier | Self::BarrierEnter | Self::BarrierLeave | Self::Latch | Self::LatchCountDown => {
                Lane::Coordination
            }
            Self::Key | Self::Ops | Self::Bulk | Self::Txn | Self::Request | Self::Watch => Lane::Point,
            Self::Collection | Self::Sequence => Lane::Point,
            Self::TaskQueue if method != Method::POST => Lane::Scan,
            Self::TaskQueue | Self::TaskClaim | Self::TaskExtend | Self::TaskComplete => Lane::Point,
            Self::TaskFail | Self::TaskCancel | Self::TaskStats | Self::Task => Lane::Point,
            Self::Keys | Self::Find | Self::Count | Self::UpdateWhere | Self::DeleteWhere | Self::Claim => Lane::Scan,
            Self::Collections | Self::Locks | Self::Elections | Self::TaskQueues | Self::TaskRequeue => Lane::Scan,
            Self::Audit => Lane::Scan,
            Self::ClusterStatus | Self::ClusterDigest | Self::ClusterFaults | Self::Leader => Lane::Node,
            Self::Members | Self::Member | Self::MemberPromote | Self::MemberDemote => Lane::Node,
            Self::MemberReplace | Self::MemberRepair | Self::Backup => Lane::Node,
            Self::AccessUsers | Self::AccessUser | Self::AccessRoles | Self::AccessRole => Lane::Node,
            Self::AccessTokens | Self::AccessToken | Self::AccessSelf => Lane::Node,
            Self::Livez | Self::Readyz | Self::Metrics | Self::Version | Self::OpenApi | Self::Unknown => Lane::Node,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serves_data_is_bounded_and_what_tells_of_the_node_is_not() {
        for route in Route::ALL {
            for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
                assert_eq!(route.lane(&method) != Lane::Node, route.is_data(), "{method} of {route:?}");
            }
        }
    }
}
