//! Which routes exist and which methods each takes.
//!
//! Owns the mapping from a path to a [`Route`]. Never decodes or judges what stands in a path.

mod find;
mod lane;

use http::Method;

pub use find::find;

/// Everything that can be asked of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Route {
    /// `/v1/kv/{key}`
    Key,
    /// `/v1/kv`
    Keys,
    /// `/v1/ops`
    Ops,
    /// `/v1/bulk`
    Bulk,
    /// `/v1/txn`
    Txn,
    /// `/v1/find`
    Find,
    /// `/v1/count`
    Count,
    /// `/v1/update_where`
    UpdateWhere,
    /// `/v1/delete_where`
    DeleteWhere,
    /// `/v1/claim`
    Claim,
    /// `/v1/watch`
    Watch,
    /// `/v1/collections`
    Collections,
    /// `/v1/collections/{name}`
    Collection,
    /// `/v1/sequences/{name}`
    Sequence,
    /// `/v1/sessions`
    Sessions,
    /// `/v1/sessions/renew`
    SessionsRenew,
    /// `/v1/sessions/{session}`
    Session,
    /// `/v1/sessions/{session}/renew`
    SessionRenew,
    /// `/v1/locks`
    Locks,
    /// `/v1/locks/{name}`
    Lock,
    /// `/v1/locks/{name}/acquire`
    LockAcquire,
    /// `/v1/locks/{name}/release`
    LockRelease,
    /// `/v1/locks/{name}/check`
    LockCheck,
    /// `/v1/elections`
    Elections,
    /// `/v1/elections/{name}`
    Election,
    /// `/v1/elections/{name}/campaign`
    ElectionCampaign,
    /// `/v1/elections/{name}/proclaim`
    ElectionProclaim,
    /// `/v1/elections/{name}/resign`
    ElectionResign,
    /// `/v1/elections/{name}/observe`
    ElectionObserve,
    /// `/v1/barriers/{name}`
    Barrier,
    /// `/v1/barriers/{name}/enter`
    BarrierEnter,
    /// `/v1/barriers/{name}/leave`
    BarrierLeave,
    /// `/v1/latches/{name}`
    Latch,
    /// `/v1/latches/{name}/count_down`
    LatchCountDown,
    /// `/v1/tasks`
    TaskQueues,
    /// `/v1/tasks/{queue}`
    TaskQueue,
    /// `/v1/tasks/{queue}/claim`
    TaskClaim,
    /// `/v1/tasks/{queue}/extend`
    TaskExtend,
    /// `/v1/tasks/{queue}/complete`
    TaskComplete,
    /// `/v1/tasks/{queue}/fail`
    TaskFail,
    /// `/v1/tasks/{queue}/cancel`
    TaskCancel,
    /// `/v1/tasks/{queue}/requeue`
    TaskRequeue,
    /// `/v1/tasks/{queue}/stats`
    TaskStats,
    /// `/v1/tasks/{queue}/task/{id}`
    Task,
    /// `/v1/requests/{id}`
    Request,
    /// `/v1/audit`
    Audit,
    /// `/v1/cluster/status`
    ClusterStatus,
    /// `/v1/cluster/digest`
    ClusterDigest,
    /// `/v1/cluster/faults`
    ClusterFaults,
    /// `/v1/cluster/leader`
    Leader,
    /// `/v1/cluster/members`
    Members,
    /// `/v1/cluster/members/{id}`
    Member,
    /// `/v1/cluster/members/{id}/promote`
    MemberPromote,
    /// `/v1/cluster/members/{id}/demote`
    MemberDemote,
    /// `/v1/cluster/members/{id}/replace`
    MemberReplace,
    /// `/v1/cluster/members/{id}/repair`
    MemberRepair,
    /// `/v1/cluster/backup`
    Backup,
    /// `/v1/access/users`
    AccessUsers,
    /// `/v1/access/users/{name}`
    AccessUser,
    /// `/v1/access/roles`
    AccessRoles,
    /// `/v1/access/roles/{name}`
    AccessRole,
    /// `/v1/access/tokens`
    AccessTokens,
    /// `/v1/access/tokens/{id}`
    AccessToken,
    /// `/v1/access/self`
    AccessSelf,
    /// `/livez`
    Livez,
    /// `/readyz`
    Readyz,
    /// `/metrics`
    Metrics,
    /// `/version`
    Version,
    /// `/openapi.json`
    OpenApi,
    /// Any other path.
    Unknown,
}

/// What a route does under one method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// It puts a command into the log, so it has a request id.
    pub writes: bool,
    /// It reads a request body.
    pub takes_body: bool,
}

/// Who may ask for a route, where authentication is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Anybody: it tells no more than that the node lives, and what it is.
    None,
    /// Whoever says who they are.
    Known,
    /// Who may administer everything.
    Admin,
    /// Who has a right on what the request names: its handler says what that is.
    Judged,
}

const READ: Access = Access { writes: false, takes_body: false };
const ASK: Access = Access { writes: false, takes_body: true };
const WRITE: Access = Access { writes: true, takes_body: true };

impl Route {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 70] = [
        Self::Key,
        Self::Keys,
        Self::Ops,
        Self::Bulk,
        Self::Txn,
        Self::Find,
        Self::Count,
        Self::UpdateWhere,
        Self::DeleteWhere,
        Self::Claim,
        Self::Watch,
        Self::Collections,
        Self::Collection,
        Self::Sequence,
        Self::Sessions,
        Self::SessionsRenew,
        Self::Session,
        Self::SessionRenew,
        Self::Locks,
        Self::Lock,
        Self::LockAcquire,
        Self::LockRelease,
        Self::LockCheck,
        Self::Elections,
        Self::Election,
        Self::ElectionCampaign,
        Self::ElectionProclaim,
        Self::ElectionResign,
        Self::ElectionObserve,
        Self::Barrier,
        Self::BarrierEnter,
        Self::BarrierLeave,
        Self::Latch,
        Self::LatchCountDown,
        Self::TaskQueues,
        Self::TaskQueue,
        Self::TaskClaim,
        Self::TaskExtend,
        Self::TaskComplete,
        Self::TaskFail,
        Self::TaskCancel,
        Self::TaskRequeue,
        Self::TaskStats,
        Self::Task,
        Self::Request,
        Self::Audit,
        Self::ClusterStatus,
        Self::ClusterDigest,
        Self::ClusterFaults,
        Self::Leader,
        Self::Members,
        Self::Member,
        Self::MemberPromote,
        Self::MemberDemote,
        Self::MemberReplace,
        Self::MemberRepair,
        Self::Backup,
        Self::AccessUsers,
        Self::AccessUser,
        Self::AccessRoles,
        Self::AccessRole,
        Self::AccessTokens,
        Self::AccessToken,
        Self::AccessSelf,
        Self::Livez,
        Self::Readyz,
        Self::Metrics,
        Self::Version,
        Self::OpenApi,
        Self::Unknown,
    ];

    /// The path as the documentation and the metrics show it.
    pub fn template(self) -> &'static str {
        match self {
            Self::Key => "/v1/kv/{key}",
            Self::Keys => "/v1/kv",
            Self::Ops => "/v1/ops",
            Self::Bulk => "/v1/bulk",
            Self::Txn => "/v1/txn",
            Self::Find => "/v1/find",
            Self::Count => "/v1/count",
            Self::UpdateWhere => "/v1/update_where",
            Self::DeleteWhere => "/v1/delete_where",
            Self::Claim => "/v1/claim",
            Self::Watch => "/v1/watch",
            Self::Collections => "/v1/collections",
            Self::Collection => "/v1/collections/{name}",
            Self::Sequence => "/v1/sequences/{name}",
            Self::Sessions => "/v1/sessions",
            Self::SessionsRenew => "/v1/sessions/renew",
            Self::Session => "/v1/sessions/{session}",
            Self::SessionRenew => "/v1/sessions/{session}/renew",
            Self::Locks => "/v1/locks",
            Self::Lock => "/v1/locks/{name}",
            Self::LockAcquire => "/v1/locks/{name}/acquire",
            Self::LockRelease => "/v1/locks/{name}/release",
            Self::LockCheck => "/v1/locks/{name}/check",
            Self::Elections => "/v1/elections",
            Self::Election => "/v1/elections/{name}",
            Self::ElectionCampaign => "/v1/elections/{name}/campaign",
            Self::ElectionProclaim => "/v1/elections/{name}/proclaim",
            Self::ElectionResign => "/v1/elections/{name}/resign",
            Self::ElectionObserve => "/v1/elections/{name}/observe",
            Self::Barrier => "/v1/barriers/{name}",
            Self::BarrierEnter => "/v1/barriers/{name}/enter",
            Self::BarrierLeave => "/v1/barriers/{name}/leave",
            Self::Latch => "/v1/latches/{name}",
            Self::LatchCountDown => "/v1/latches/{name}/count_down",
            Self::TaskQueues => "/v1/tasks",
            Self::TaskQueue => "/v1/tasks/{queue}",
            Self::TaskClaim => "/v1/tasks/{queue}/claim",
            Self::TaskExtend => "/v1/tasks/{queue}/extend",
            Self::TaskComplete => "/v1/tasks/{queue}/complete",
            Self::TaskFail => "/v1/tasks/{queue}/fail",
            Self::TaskCancel => "/v1/tasks/{queue}/cancel",
            Self::TaskRequeue => "/v1/tasks/{queue}/requeue",
            Self::TaskStats => "/v1/tasks/{queue}/stats",
            Self::Task => "/v1/tasks/{queue}/task/{id}",
            Self::Request => "/v1/requests/{id}",
            Self::Audit => "/v1/audit",
            Self::ClusterStatus => "/v1/cluster/status",
            Self::ClusterDigest => "/v1/cluster/digest",
            Self::ClusterFaults => "/v1/cluster/faults",
            Self::Leader => "/v1/cluster/leader",
            Self::Members => "/v1/cluster/members",
            Self::Member => "/v1/cluster/members/{id}",
            Self::MemberPromote => "/v1/cluster/members/{id}/promote",
            Self::MemberDemote => "/v1/cluster/members/{id}/demote",
            Self::MemberReplace => "/v1/cluster/members/{id}/replace",
            Self::MemberRepair => "/v1/cluster/members/{id}/repair",
            Self::Backup => "/v1/cluster/backup",
            Self::AccessUsers => "/v1/access/users",
            Self::AccessUser => "/v1/access/users/{name}",
            Self::AccessRoles => "/v1/access/roles",
            Self::AccessRole => "/v1/access/roles/{name}",
            Self::AccessTokens => "/v1/access/tokens",
            Self::AccessToken => "/v1/access/tokens/{id}",
            Self::AccessSelf => "/v1/access/self",
            Self::Livez => "/livez",
            Self::Readyz => "/readyz",
            Self::Metrics => "/metrics",
            Self::Version => "/version",
            Self::OpenApi => "/openapi.json",
            Self::Unknown => "unknown",
        }
    }

    /// The value of the `Allow` header.
    pub fn allow(self) -> &'static str {
        match self {
            Self::Key => "GET, HEAD, PUT, PATCH, DELETE",
            Self::Ops | Self::Bulk | Self::Txn | Self::Find | Self::Count | Self::Leader => "POST",
            Self::UpdateWhere | Self::DeleteWhere | Self::Claim => "POST",
            Self::Collection => "GET, HEAD, PUT, DELETE",
            Self::Sequence | Self::Sessions | Self::TaskQueue | Self::Members | Self::ClusterFaults => {
                "GET, HEAD, POST"
            }
            Self::Member | Self::AccessToken => "DELETE",
            Self::AccessUser | Self::AccessRole => "GET, HEAD, PUT, DELETE",
            Self::AccessTokens => "GET, HEAD, POST",
            Self::Session => "GET, HEAD, DELETE",
            Self::Latch => "GET, HEAD, PUT, DELETE",
            _ if self.is_posted() => "POST",
            Self::Unknown => "",
            _ => "GET, HEAD",
        }
    }

    /// What the route does under `method`; `None` where it does not take it.
    pub fn access(self, method: &Method) -> Option<Access> {
        match (self, method) {
            (Self::Unknown, _) => None,
            (Self::Key, &Method::PUT | &Method::PATCH) | (Self::Ops | Self::Bulk | Self::Txn, &Method::POST) => {
                Some(WRITE)
            }
            (Self::Key, &Method::DELETE) => Some(Access { writes: true, takes_body: false }),
            (Self::UpdateWhere | Self::DeleteWhere | Self::Claim | Self::Sequence, &Method::POST)
            | (Self::Collection, &Method::PUT) => Some(WRITE),
            (Self::Collection, &Method::DELETE) => Some(Access { writes: true, takes_body: false }),
            (Self::UpdateWhere | Self::DeleteWhere | Self::Claim, _) => None,
            (Self::TaskQueue | Self::ClusterFaults, &Method::POST) => Some(WRITE),
            (Self::SessionsRenew | Self::SessionRenew, &Method::POST) => Some(ASK),
            // No command of the log: asked for again, they are done already.
            (Self::Members | Self::MemberPromote | Self::MemberDemote, &Method::POST) => Some(ASK),
            (Self::MemberReplace | Self::MemberRepair, &Method::POST) => Some(ASK),
            (Self::Member, &Method::DELETE) => Some(READ),
            (Self::AccessUser | Self::AccessRole, &Method::PUT) | (Self::AccessTokens, &Method::POST) => Some(WRITE),
            (Self::AccessUser | Self::AccessRole | Self::AccessToken, &Method::DELETE) => {
                Some(Access { writes: true, takes_body: false })
            }
            (Self::Member | Self::AccessToken, _) => None,
            (Self::Sessions, &Method::POST) | (Self::Latch, &Method::PUT) => Some(WRITE),
            (Self::Session | Self::Latch, &Method::DELETE) => Some(Access { writes: true, takes_body: false }),
            (_, &Method::POST) if self.is_posted() => Some(WRITE),
            _ if self.is_posted() => None,
            (Self::Find | Self::Count | Self::Leader, &Method::POST) => Some(ASK),
            (Self::Ops | Self::Bulk | Self::Txn | Self::Find | Self::Count | Self::Leader, _) => None,
            (_, &Method::GET | &Method::HEAD) => Some(READ),
            _ => None,
        }
    }

    /// Whether it asks for something to be done about what it names, and takes nothing but `POST`.
    fn is_posted(self) -> bool {
        matches!(
            self,
            Self::SessionsRenew
                | Self::SessionRenew
                | Self::LockAcquire
                | Self::LockRelease
                | Self::ElectionCampaign
                | Self::ElectionProclaim
                | Self::ElectionResign
                | Self::BarrierEnter
                | Self::BarrierLeave
                | Self::LatchCountDown
                | Self::TaskClaim
                | Self::TaskExtend
                | Self::TaskComplete
                | Self::TaskFail
                | Self::TaskCancel
                | Self::TaskRequeue
                | Self::MemberPromote
                | Self::MemberDemote
                | Self::MemberReplace
                | Self::MemberRepair
        )
    }

    /// Who may ask for it, where authentication is required.
    pub fn guard(self) -> Guard {
        match self {
            Self::Livez | Self::Readyz | Self::Version | Self::OpenApi | Self::Unknown => Guard::None,
            Self::Metrics | Self::ClusterStatus | Self::ClusterDigest | Self::AccessSelf => Guard::Known,
            Self::AccessUsers | Self::AccessUser | Self::AccessRoles | Self::AccessRole => Guard::Admin,
            Self::AccessTokens | Self::AccessToken => Guard::Admin,
            Self::Leader | Self::Members | Self::Member | Self::MemberPromote | Self::MemberDemote => Guard::Admin,
            Self::MemberReplace | Self::MemberRepair | Self::Backup | Self::ClusterFaults => Guard::Admin,
            Self::Key | Self::Keys | Self::Ops | Self::Bulk | Self::Txn | Self::Find | Self::Count => Guard::Judged,
            Self::UpdateWhere | Self::DeleteWhere | Self::Claim | Self::Watch | Self::Request | Self::Audit => {
                Guard::Judged
            }
            Self::Collections | Self::Collection | Self::Sequence => Guard::Judged,
            Self::Sessions | Self::SessionsRenew | Self::Session | Self::SessionRenew => Guard::Judged,
            Self::Locks | Self::Lock | Self::LockAcquire | Self::LockRelease | Self::LockCheck => Guard::Judged,
            Self::Elections | Self::Election | Self::ElectionObserve | Self::ElectionCampaign => Guard::Judged,
            Self::ElectionProclaim | Self::ElectionResign => Guard::Judged,
            Self::Barrier | Self::BarrierEnter | Self::BarrierLeave | Self::Latch | Self::LatchCountDown => {
                Guard::Judged
            }
            Self::TaskQueues | Self::TaskQueue | Self::TaskClaim | Self::TaskExtend | Self::TaskComplete => {
                Guard::Judged
            }
            Self::TaskFail | Self::TaskCancel | Self::TaskRequeue | Self::TaskStats | Self::Task => Guard::Judged,
        }
    }

    /// Whether it serves data rather than telling about the node.
    pub fn is_data(self) -> bool {
        match self {
            Self::Key | Self::Keys | Self::Ops | Self::Bulk | Self::Txn | Self::Find | Self::Count | Self::Request => {
                true
            }
            Self::UpdateWhere | Self::DeleteWhere | Self::Claim => true,
            Self::Watch | Self::Collections | Self::Collection | Self::Sequence | Self::Audit => true,
            Self::Sessions | Self::SessionsRenew | Self::Session | Self::SessionRenew => true,
            Self::Locks | Self::Lock | Self::LockAcquire | Self::LockRelease | Self::LockCheck => true,
            Self::Elections | Self::Election | Self::ElectionObserve => true,
            Self::ElectionCampaign | Self::ElectionProclaim | Self::ElectionResign => true,
            Self::Barrier | Self::BarrierEnter | Self::BarrierLeave | Self::Latch | Self::LatchCountDown => true,
            Self::TaskQueues | Self::TaskQueue | Self::TaskClaim | Self::TaskExtend | Self::TaskComplete => true,
            Self::TaskFail | Self::TaskCancel | Self::TaskRequeue | Self::TaskStats | Self::Task => true,
            Self::ClusterStatus | Self::ClusterDigest | Self::ClusterFaults | Self::Leader => false,
            Self::Members | Self::Member | Self::MemberPromote | Self::MemberDemote => false,
            Self::MemberReplace | Self::MemberRepair => false,
            Self::Backup => false,
            Self::AccessUsers | Self::AccessUser | Self::AccessRoles | Self::AccessRole => false,
            Self::AccessTokens | Self::AccessToken | Self::AccessSelf => false,
            Self::Livez | Self::Readyz | Self::Metrics | Self::Version | Self::OpenApi | Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_template_leads_back_to_its_route() {
        for (number, route) in Route::ALL.into_iter().enumerate() {
            assert_eq!(route as usize, number, "{route:?} stands at the wrong place of ALL");
            assert_eq!(find(route.template()).0, route);
        }
    }

    #[test]
    fn allow_lists_exactly_the_methods_that_have_access() {
        let methods = [Method::GET, Method::HEAD, Method::PUT, Method::PATCH, Method::DELETE, Method::POST];
        for route in Route::ALL {
            for method in &methods {
                let listed = route.allow().split(", ").any(|name| name == method.as_str());
                assert_eq!(listed, route.access(method).is_some(), "{method} of {route:?}");
            }
            assert_eq!(route.access(&Method::OPTIONS), None);
        }
    }
}
