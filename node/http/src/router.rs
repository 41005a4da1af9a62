//! All routes of the API, and what is made of them: the router and the OpenAPI document.
//!
//! Owns which resources there are. Never knows what holds for a route: its resource declares that.

use std::sync::{LazyLock, OnceLock};

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{MethodRouter, any};
use bytes::Bytes;
use http::Method;
use quorate_api::WATCH_CONTENT_TYPE;
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_threads::background;
use utoipa::openapi::path::{HttpMethod, Operation as Described, ParameterIn, PathItem, Paths};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{RefOr, Response};
use utoipa_axum::routes;

use crate::context::Context;
use crate::described::{self, Common};
use crate::headers;
use crate::operator::openapi;
use crate::output::response::{Outcome, ok_lent};
use crate::routes::{Declared, Operation, Policy, Route, Routes, UNKNOWN};
use crate::{access, batch, coordination, keys, operator, quotas, service, tasks, watch};

/// The routes of all resources, in the order of the OpenAPI document.
pub fn declared() -> [Routes; 39] {
    [
        keys::kv::routes(),
        keys::list::routes(),
        batch::ops::routes(),
        batch::bulk::routes(),
        batch::txn::routes(),
        keys::find::routes(),
        keys::requests::routes(),
        keys::audit::routes(),
        keys::matching::routes(),
        keys::claim::routes(),
        watch::open::routes(),
        keys::collections::routes(),
        keys::sequences::routes(),
        coordination::sessions::routes(),
        coordination::locks::routes(),
        coordination::elections::routes(),
        coordination::observe::routes(),
        coordination::barriers::routes(),
        coordination::latches::routes(),
        tasks::queues::routes(),
        tasks::claim::routes(),
        operator::cluster::routes(),
        operator::faults::routes(),
        operator::members::routes(),
        operator::invitations::routes(),
        operator::backup::routes(),
        access::users::routes(),
        access::roles::routes(),
        access::tokens::routes(),
        access::own::routes(),
        access::check::routes(),
        quotas::default::routes(),
        quotas::principals::routes(),
        quotas::prefixes::routes(),
        operator::health::routes(),
        operator::node::routes(),
        operator::errors::routes(),
        operator::console::routes(),
        Routes::new().add(Policy::node(Guard::None), routes!(openapi)),
    ]
}

/// All routes, with what is made of them once.
struct Table {
    routes: Vec<Route>,
    handlers: Vec<MethodRouter>,
    paths: Paths,
    schemas: Vec<(String, RefOr<Schema>)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::of(declared()));

impl Table {
    fn of(declared: impl IntoIterator<Item = Routes>) -> Self {
        let mut table = Self { routes: Vec::new(), handlers: Vec::new(), paths: Paths::new(), schemas: Vec::new() };
        for (policy, declared) in declared.into_iter().flat_map(|routes| routes.0) {
            table.add(policy, declared);
        }
        // What is at no other path.
        table.routes.push(Route::new(UNKNOWN.into(), table.routes.len()));
        table
    }

    fn add(&mut self, policy: Policy, (schemas, paths, handler): Declared) {
        self.schemas.extend(schemas);
        for (template, item) in paths.paths {
            let at = self.routes.iter().position(|route| route.template() == template).unwrap_or_else(|| {
                self.routes.push(Route::new(template.clone(), self.routes.len()));
                self.handlers.push(MethodRouter::new());
                self.routes.len() - 1
            });
            for (method, name, mut described) in operations_of(item) {
                let parameters = query_parameters(&described);
                let takes = described.request_body.as_ref().map(media_types).unwrap_or_default();
                let answer = described.responses.responses.get("200");
                let (forms, is_event_stream) = (answer.map_or(1, forms), answer.is_some_and(is_event_stream));
                let operation = Operation { method, policy, parameters, takes, forms, is_event_stream };
                described::complete(&mut described, &operation);
                self.routes[at].add(operation);
                self.paths.add_path_operation(&template, vec![name], described);
            }
            self.handlers[at] = std::mem::take(&mut self.handlers[at]).merge(handler.clone());
        }
    }
}

fn query_parameters(described: &Described) -> Vec<String> {
    let all = described.parameters.iter().flatten();
    let names = all.filter_map(|parameter| match parameter {
        RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => Some(parameter.name.clone()),
        RefOr::T(_) | RefOr::Ref(_) => None,
    });
    names.collect()
}

/// The content types of a body, as a header lists them.
fn media_types(body: &RefOr<RequestBody>) -> String {
    let RefOr::T(body) = body else { return String::new() };
    body.content.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// In how many content types an answer comes.
fn forms(response: &RefOr<Response>) -> usize {
    match response {
        RefOr::T(response) => response.content.len(),
        RefOr::Ref(_) => 1,
    }
}

/// Whether an answer is a stream of events.
fn is_event_stream(response: &RefOr<Response>) -> bool {
    matches!(response, RefOr::T(response) if response.content.contains_key(WATCH_CONTENT_TYPE))
}

/// The operations of a path.
fn operations_of(item: PathItem) -> Vec<(Method, HttpMethod, Described)> {
    let all = [
        (Method::GET, HttpMethod::Get, item.get),
        (Method::PUT, HttpMethod::Put, item.put),
        (Method::PATCH, HttpMethod::Patch, item.patch),
        (Method::POST, HttpMethod::Post, item.post),
        (Method::DELETE, HttpMethod::Delete, item.delete),
    ];
    all.into_iter().filter_map(|(method, name, described)| Some((method, name, described?))).collect()
}

/// All routes, the last for every path that has none.
pub fn all() -> &'static [Route] {
    &TABLE.routes
}

/// The templates of all routes, in the order of their numbers.
pub fn templates() -> Vec<&'static str> {
    all().iter().map(Route::template).collect()
}

/// The route of every path that has none.
pub fn unknown() -> &'static Route {
    &TABLE.routes[TABLE.routes.len() - 1]
}

/// The router of all nodes in this process: which node was asked travels with each request. What is at none of its paths goes to
/// [`nothing`].
pub fn router() -> Router {
    static ROUTER: LazyLock<Router> = LazyLock::new(|| {
        let mut router = Router::new();
        for (route, handler) in TABLE.routes.iter().zip(&TABLE.handlers) {
            let serve = from_fn(move |request, next| service::serve(route, request, next));
            let handler = handler.clone().layer(serve);
            for pattern in route.patterns(&TABLE.routes) {
                router = router.route(&pattern, handler.clone());
            }
        }
        router
    });
    ROUTER.clone()
}

/// Answers that there is nothing at a path.
pub fn nothing() -> MethodRouter {
    let unknown = from_fn(|request, next| service::serve(unknown(), request, next));
    any(service::nothing).layer(unknown)
}

/// The OpenAPI document.
pub fn document() -> serde_json::Value {
    openapi::document(TABLE.paths.clone(), TABLE.schemas.clone())
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "node", operation_id = "openapi",
    responses((status = 200, description = "OpenAPI 3.1."), Common))]
async fn openapi(_: Context) -> Outcome {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    // It is long, and made once.
    let text = TEXT.get_or_init(|| background::in_place(usize::MAX, || Bytes::from(document().to_string())));
    Ok(ok_lent(headers::JSON, text))
}

#[cfg(test)]
mod tests {
    use quorate_node_core::gateway::admission::request_class::RequestClass;

    use super::*;

    fn route(template: &str) -> &'static Route {
        all().iter().find(|route| route.template() == template).expect("a route")
    }

    #[test]
    fn a_route_knows_the_name_in_its_paths() {
        for (template, path, name) in [
            ("/v1/kv/{key}", "/v1/kv/a/b%2Fc", "a/b%2Fc"),
            ("/v1/locks/{name}/acquire", "/v1/locks/l/acquire", "l"),
            ("/v1/locks/{name}/acquire", "/v1/locks//acquire", ""),
            ("/v1/tasks/{queue}/task/{id}", "/v1/tasks/q/task/a/b", "q/task/a/b"),
            ("/v1/kv", "/v1/kv", ""),
        ] {
            assert_eq!(route(template).name(path), name, "{path}");
        }
    }

    #[test]
    fn what_anybody_may_ask_is_only_read() {
        for route in all() {
            let mut open = route.operations().iter().filter(|operation| operation.policy.guard == Guard::None);
            assert!(open.all(|operation| operation.method == Method::GET), "{route:?}");
        }
    }

    #[test]
    fn what_serves_data_is_judged_by_its_handler_and_what_tells_of_the_node_is_not() {
        for route in all() {
            for operation in route.operations() {
                let Policy { class, guard, .. } = operation.policy;
                let is_judged = matches!(guard, Guard::Judged | Guard::Owned);
                assert_eq!(class != RequestClass::Node, is_judged, "{} of {route:?}", operation.method);
            }
        }
    }
}
