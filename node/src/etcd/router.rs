//! All calls of etcd's API that this node serves, with their paths.

use std::sync::LazyLock;

use axum::Router;
use axum::routing::post;
use quorate_etcd_api::METHODS;

use crate::etcd::cluster::{MemberList, Status};
use crate::etcd::kv::{DeleteRange, Put, Range, Txn};
use crate::etcd::lease::{LeaseGrant, LeaseKeepAlive, LeaseLeases, LeaseRevoke, LeaseTimeToLive};
use crate::etcd::service::{self, Exchange, Unary, method};
use crate::etcd::watch::Watch;

/// The router of all nodes in this process: which node was asked travels with each request.
pub fn router() -> Router {
    static ROUTER: LazyLock<Router> = LazyLock::new(|| {
        let router = Router::new();
        let router = unary::<DeleteRange>(unary::<Put>(unary::<Range>(router)));
        let router = unary::<LeaseRevoke>(unary::<LeaseGrant>(unary::<Txn>(router)));
        let router = unary::<LeaseLeases>(unary::<LeaseTimeToLive>(router));
        let router = unary::<Status>(unary::<MemberList>(router));
        exchange::<Watch>(exchange::<LeaseKeepAlive>(router))
    });
    ROUTER.clone()
}

/// The paths of all calls, served or not, in the order of their numbers.
pub fn route_templates() -> Vec<&'static str> {
    METHODS.iter().map(|method| method.path).collect()
}

fn unary<U: Unary>(router: Router) -> Router {
    let gateway = method(U::PATH).gateway;
    let router = router.route(U::PATH, post(service::grpc::<U>));
    gateway.iter().fold(router, |router, path| router.route(path, post(service::json::<U>)))
}

fn exchange<E: Exchange>(router: Router) -> Router {
    let gateway = method(E::PATH).gateway;
    let router = router.route(E::PATH, post(service::grpc_exchange::<E>));
    gateway.iter().fold(router, |router, path| router.route(path, post(service::json_exchange::<E>)))
}
