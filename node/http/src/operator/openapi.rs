//! The OpenAPI document, made of what the handlers declare.
//!
//! Owns what stands at its head. What holds for all of it, whatever the operation, `schema` adds.

use quorate_api::{Problem, WatchEnd, WatchProgress, WatchReset};
use serde_json::json;
use utoipa::OpenApi;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::Paths;
use utoipa::openapi::schema::Schema;

use crate::described::{BEARER, CERTIFICATE};
use crate::operator::schema;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Quorate",
        description = "A Raft-replicated, linearizable compare-and-swap store. Any node answers any request.\n\nEvery response carries \
            `Quorate-Revision` (revision at which it was evaluated), `Quorate-Term`, `Quorate-Leader` (node id or `none`), \
            `Quorate-Cluster` (the cluster's id, as soon as the node is in one) and `X-Request-Id`. Every error is a problem document (RFC 9457) that says whether the request was applied.",
        license(name = "Apache-2.0")
    ),
    components(schemas(Problem, WatchProgress, WatchReset, WatchEnd)),
    tags(
        (name = "entries", description = "Entries, read and written."),
        (name = "collections", description = "Rules, indexes and sequences."),
        (name = "coordination", description = "Sessions, locks, elections, barriers and latches."),
        (name = "tasks", description = "Queues of tasks that are given out when they are due."),
        (name = "access", description = "Users, roles and tokens."),
        (name = "quotas", description = "What principals, and all names with a prefix, may take."),
        (name = "cluster", description = "The cluster and its members."),
        (name = "node", description = "The answering node.")
    )
)]
struct Document;

/// The whole document, `HEAD` left out: it is `GET` without a body everywhere.
pub fn document(paths: Paths, schemas: Vec<(String, RefOr<Schema>)>) -> serde_json::Value {
    let mut described = Document::openapi();
    described.paths = paths;
    described.components.get_or_insert_default().schemas.extend(schemas);
    let mut document = serde_json::to_value(described).expect("the document is JSON");
    document["components"]["securitySchemes"] = json!({
        BEARER: {
            "type": "http",
            "scheme": "bearer",
            "description": "Where nodes require authentication: a token of `POST /v1/access/tokens`, or that of `root`. Counts before a certificate.",
        },
        CERTIFICATE: {
            "type": "mutualTLS",
            "description": "Where nodes require authentication and have a CA for clients: the user is the certificate's first DNS name, else its common name.",
        },
    });
    schema::complete(&mut document);
    document
}
