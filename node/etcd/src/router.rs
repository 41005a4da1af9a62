//! All calls of etcd's API that this node serves: their paths, what holds for each, and what answers it.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::{get, post};
use futures::StreamExt;
use http::header;
use quorate_etcd_api::{METHODS, Method};
use quorate_node_core::gateway::admission::request_class::RequestClass;

use crate::health::health;
use crate::method::{Incoming, Outgoing, Policy, Served, Work};
use crate::{auth, cluster, election, kv, lease, lock, maintenance, roles, service, users, watch};

const POINT_READ: Policy = Policy::read(RequestClass::Point);
const POINT_WRITE: Policy = Policy::write(RequestClass::Point);
const COORDINATION: Policy = Policy::write(RequestClass::Coordination);
const COORDINATION_READ: Policy = Policy::read(RequestClass::Coordination);
/// Stands in a line.
const WAITING: Policy = Policy { waits: true, ..COORDINATION };
const KEEP_ALIVE: Policy = Policy { is_vital: true, ..COORDINATION_READ.for_owners() };

/// A call with one message each way: its path over gRPC, what holds for it, and what answers.
macro_rules! unary {
    ($path:literal, $policy:expr, $answer:path) => {{
        let work = Work::Unary(|call, message| {
            Box::pin(async move {
                let answer = $answer(&call, message.read()?).await?;
                Ok(Box::new(answer) as Box<dyn Outgoing>)
            })
        });
        Served { method: method($path), policy: $policy, work }
    }};
}

/// A call with a stream each way: its path over gRPC, what holds for it, whether it goes on where nothing more is asked, and what begins it.
macro_rules! exchange {
    ($path:literal, $policy:expr, goes_on: $goes_on:literal, $open:path) => {{
        let work = Work::Exchange {
            goes_on: $goes_on,
            open: |call, questions, stop| {
                let requests = questions.map(|message| message.and_then(Incoming::read)).boxed();
                let answers = $open(call, requests, stop);
                answers.map(|answer| answer.map(|answer| Box::new(answer) as Box<dyn Outgoing>)).boxed()
            },
        };
        Served { method: method($path), policy: $policy, work }
    }};
}

/// All that are served.
fn served() -> [Served; 48] {
    [
        unary!("/etcdserverpb.KV/Range", POINT_READ, kv::range),
        unary!("/etcdserverpb.KV/Put", POINT_WRITE, kv::put),
        unary!("/etcdserverpb.KV/DeleteRange", POINT_WRITE, kv::delete_range),
        unary!("/etcdserverpb.KV/Txn", POINT_WRITE, kv::txn),
        unary!("/etcdserverpb.KV/Compact", Policy::ADMIN_WRITE.in_class(RequestClass::Point), kv::compact),
        exchange!("/etcdserverpb.KV/RangeStream", POINT_READ, goes_on: false, kv::range_stream),
        unary!("/etcdserverpb.Lease/LeaseGrant", COORDINATION, lease::grant),
        unary!("/etcdserverpb.Lease/LeaseRevoke", COORDINATION.for_owners(), lease::revoke),
        unary!("/etcdserverpb.Lease/LeaseTimeToLive", COORDINATION_READ, lease::time_to_live),
        unary!("/etcdserverpb.Lease/LeaseLeases", Policy::read(RequestClass::Scan), lease::leases),
        exchange!("/etcdserverpb.Lease/LeaseKeepAlive", KEEP_ALIVE, goes_on: false, lease::keep_alives),
        exchange!("/etcdserverpb.Watch/Watch", POINT_READ, goes_on: true, watch::open),
        unary!("/etcdserverpb.Cluster/MemberList", Policy::KNOWN, cluster::list),
        unary!("/etcdserverpb.Cluster/MemberAdd", Policy::ADMIN, cluster::add),
        unary!("/etcdserverpb.Cluster/MemberRemove", Policy::ADMIN, cluster::remove),
        unary!("/etcdserverpb.Cluster/MemberPromote", Policy::ADMIN, cluster::promote),
        unary!("/etcdserverpb.Cluster/MemberUpdate", Policy::ADMIN, cluster::update),
        unary!("/etcdserverpb.Maintenance/Status", Policy::KNOWN, maintenance::status),
        unary!("/etcdserverpb.Maintenance/Alarm", Policy::KNOWN, maintenance::alarm),
        unary!("/etcdserverpb.Maintenance/Defragment", Policy::ADMIN, maintenance::defragment),
        unary!("/etcdserverpb.Maintenance/Hash", Policy::ADMIN, maintenance::hash),
        unary!("/etcdserverpb.Maintenance/HashKV", Policy::ADMIN.in_class(RequestClass::Scan), maintenance::hash_kv),
        unary!("/etcdserverpb.Maintenance/MoveLeader", Policy::ADMIN, maintenance::move_leader),
        exchange!("/etcdserverpb.Maintenance/Snapshot", Policy::BACKUP, goes_on: false, maintenance::snapshot),
        unary!("/etcdserverpb.Auth/Authenticate", Policy::ANYBODY, auth::authenticate),
        unary!("/etcdserverpb.Auth/AuthStatus", Policy::KNOWN, auth::status),
        unary!("/etcdserverpb.Auth/AuthEnable", Policy::ADMIN, auth::enable),
        unary!("/etcdserverpb.Auth/AuthDisable", Policy::ADMIN, auth::disable),
        unary!("/etcdserverpb.Auth/UserAdd", Policy::ADMIN_WRITE, users::add),
        unary!("/etcdserverpb.Auth/UserGet", Policy::ADMIN, users::get),
        unary!("/etcdserverpb.Auth/UserList", Policy::ADMIN, users::list),
        unary!("/etcdserverpb.Auth/UserDelete", Policy::ADMIN_WRITE, users::delete),
        unary!("/etcdserverpb.Auth/UserChangePassword", Policy::ADMIN_WRITE, users::change_password),
        unary!("/etcdserverpb.Auth/UserGrantRole", Policy::ADMIN_WRITE, users::grant_role),
        unary!("/etcdserverpb.Auth/UserRevokeRole", Policy::ADMIN_WRITE, users::revoke_role),
        unary!("/etcdserverpb.Auth/RoleAdd", Policy::ADMIN_WRITE, roles::add),
        unary!("/etcdserverpb.Auth/RoleGet", Policy::ADMIN, roles::get),
        unary!("/etcdserverpb.Auth/RoleList", Policy::ADMIN, roles::list),
        unary!("/etcdserverpb.Auth/RoleDelete", Policy::ADMIN_WRITE, roles::delete),
        unary!("/etcdserverpb.Auth/RoleGrantPermission", Policy::ADMIN_WRITE, roles::grant_permission),
        unary!("/etcdserverpb.Auth/RoleRevokePermission", Policy::ADMIN_WRITE, roles::revoke_permission),
        unary!("/v3lockpb.Lock/Lock", WAITING, lock::lock),
        unary!("/v3lockpb.Lock/Unlock", COORDINATION, lock::unlock),
        unary!("/v3electionpb.Election/Campaign", WAITING, election::campaign),
        unary!("/v3electionpb.Election/Proclaim", COORDINATION, election::proclaim),
        unary!("/v3electionpb.Election/Resign", COORDINATION, election::resign),
        unary!("/v3electionpb.Election/Leader", COORDINATION_READ, election::leader),
        exchange!("/v3electionpb.Election/Observe", COORDINATION_READ, goes_on: true, election::observe),
    ]
}

/// The entry of a call in the table.
fn method(path: &str) -> &'static Method {
    METHODS.iter().find(|method| method.path == path).expect("every call that is served is in the table")
}

/// The router of all nodes in this process: which node was asked travels with each request.
pub fn router() -> Router {
    static ROUTER: LazyLock<Router> = LazyLock::new(|| {
        let (served, router) = (served(), Router::new().route("/health", get(health)));
        let router = served.into_iter().fold(router, add);
        let is_served = |method: &&Method| served.iter().any(|served| served.method.path == method.path);
        let others = METHODS.iter().filter(|method| !is_served(method));
        others.fold(router, |router, method| {
            router.route(method.path, post(async || service::unimplemented(method.path)))
        })
    });
    ROUTER.clone()
}

/// The call over gRPC that is served at a path.
pub fn served_at(path: &str) -> Option<Served> {
    static SERVED: LazyLock<HashMap<&str, Served>> =
        LazyLock::new(|| served().into_iter().map(|served| (served.method.path, served)).collect());
    SERVED.get(path).copied()
}

fn add(router: Router, served: Served) -> Router {
    let router = router.route(served.method.path, post(move |request| service::grpc(served, request)));
    let gateway = served.method.gateway.iter();
    gateway.fold(router, |router, path| router.route(path, post(move |request| service::json(served, request))))
}

/// What a call over gRPC is answered that is at none of the paths; `None` for a request that is no such call.
pub fn unknown(request: &Request) -> Option<Response> {
    let kind = request.headers().get(header::CONTENT_TYPE)?;
    kind.as_bytes().starts_with(b"application/grpc").then(|| service::unimplemented(request.uri().path()))
}

/// The paths of all calls, served or not, in the order of their numbers.
pub fn route_templates() -> Vec<&'static str> {
    METHODS.iter().map(|method| method.path).collect()
}
