//! All calls of etcd's API that this node serves, with their paths.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::{get, post};
use http::header;
use quorate_etcd_api::{METHODS, Method};

use crate::auth::{AuthDisable, AuthEnable, AuthStatus, Authenticate};
use crate::cluster::{MemberAdd, MemberList, MemberPromote, MemberRemove, MemberUpdate};
use crate::election::{Campaign, Leader, Observe, Proclaim, Resign};
use crate::health::health;
use crate::kv::{Compact, DeleteRange, Put, Range, RangeStream, Txn};
use crate::lease::{LeaseGrant, LeaseKeepAlive, LeaseLeases, LeaseRevoke, LeaseTimeToLive};
use crate::lock::{Lock, Unlock};
use crate::maintenance::{Alarm, Defragment, Hash, HashKV, MoveLeader, Snapshot, Status};
use crate::method::Served;
use crate::roles::{RoleAdd, RoleDelete, RoleGet, RoleGrantPermission, RoleList, RoleRevokePermission};
use crate::service;
use crate::users::{UserAdd, UserChangePassword, UserDelete, UserGet, UserGrantRole, UserList, UserRevokeRole};
use crate::watch::Watch;

/// All that are served.
fn served() -> [Served; 48] {
    [
        Served::unary::<Range>(),
        Served::unary::<Put>(),
        Served::unary::<DeleteRange>(),
        Served::unary::<Txn>(),
        Served::unary::<Compact>(),
        Served::exchange::<RangeStream>(),
        Served::unary::<LeaseGrant>(),
        Served::unary::<LeaseRevoke>(),
        Served::unary::<LeaseTimeToLive>(),
        Served::unary::<LeaseLeases>(),
        Served::exchange::<LeaseKeepAlive>(),
        Served::exchange::<Watch>(),
        Served::unary::<MemberList>(),
        Served::unary::<MemberAdd>(),
        Served::unary::<MemberRemove>(),
        Served::unary::<MemberPromote>(),
        Served::unary::<MemberUpdate>(),
        Served::unary::<Status>(),
        Served::unary::<Alarm>(),
        Served::unary::<Defragment>(),
        Served::unary::<Hash>(),
        Served::unary::<HashKV>(),
        Served::unary::<MoveLeader>(),
        Served::exchange::<Snapshot>(),
        Served::unary::<Authenticate>(),
        Served::unary::<AuthStatus>(),
        Served::unary::<AuthEnable>(),
        Served::unary::<AuthDisable>(),
        Served::unary::<UserAdd>(),
        Served::unary::<UserGet>(),
        Served::unary::<UserList>(),
        Served::unary::<UserDelete>(),
        Served::unary::<UserChangePassword>(),
        Served::unary::<UserGrantRole>(),
        Served::unary::<UserRevokeRole>(),
        Served::unary::<RoleAdd>(),
        Served::unary::<RoleGet>(),
        Served::unary::<RoleList>(),
        Served::unary::<RoleDelete>(),
        Served::unary::<RoleGrantPermission>(),
        Served::unary::<RoleRevokePermission>(),
        Served::unary::<Lock>(),
        Served::unary::<Unlock>(),
        Served::unary::<Campaign>(),
        Served::unary::<Proclaim>(),
        Served::unary::<Resign>(),
        Served::unary::<Leader>(),
        Served::exchange::<Observe>(),
    ]
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
