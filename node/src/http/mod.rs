//! The public HTTP API: from an accepted connection to an answer and back.
//!
//! Owns the list of resources; each declares its routes in its own file, with the types, policy and description of each operation.
//! Knows nothing of Raft or RocksDB: everything it asks of the node goes through [`Backend`]. The order of reading: `routes` (what
//! holds for a route), `service` (the way of every request), the resources, then the leaves that they use.

mod accept;
mod access;
mod accounts;
mod answers;
mod api;
mod backend;
mod backup;
mod barriers;
mod body;
mod bucket;
mod bulk;
mod bulk_answer;
mod bulk_body;
mod caught;
mod claim;
mod cluster;
mod collections;
mod command;
mod conditions;
mod context;
mod convert;
mod coordinate;
mod criteria;
mod cursor;
mod done;
mod door;
mod elections;
mod error;
mod etags;
mod extract;
mod failed;
mod faults;
mod find;
mod find_body;
mod handshake;
mod headers;
mod health;
mod json;
mod json_body;
mod key;
mod kv;
mod lanes;
mod latches;
mod line;
mod lines;
mod list;
mod locks;
mod matching;
mod members;
mod mismatch;
mod observe;
mod op_body;
mod openapi;
mod ops;
mod origin;
mod prefer;
mod pulse;
mod queue;
mod read;
mod render;
mod requests;
mod response;
mod roles;
mod routes;
mod scan;
mod schema;
mod secret;
mod sequences;
mod service;
mod sessions;
mod sse;
mod stream;
mod task_answer;
mod task_body;
mod task_claim;
mod task_line;
mod tasks;
mod tokens;
mod told;
mod trail;
mod txn;
mod txn_answer;
mod txn_body;
mod users;
mod wait;
mod watch;
mod watch_body;
mod watch_event;
mod watch_read;
mod watch_wish;
mod write;

pub use accept::{ServeSettings, serve};
pub use accounts::AccountLimits;
pub use api::{Api, ApiSettings};
pub use backend::{Access, Backend, Coordination, DigestAt, IsDone, Node, Seen};
pub use door::{AuditFile, AuditSamples, DoorSettings, RootToken};
pub use lanes::{Lane, LaneBounds};
pub use openapi::document as openapi_document;
pub use routes::{Guard, Operation, Policy, Route, all as all_routes};
pub use secret::TokenText;

/// The routes of all resources, in the order of the OpenAPI document.
fn declared() -> [routes::Routes; 31] {
    [
        kv::routes(),
        list::routes(),
        ops::routes(),
        bulk::routes(),
        txn::routes(),
        find::routes(),
        requests::routes(),
        trail::routes(),
        matching::routes(),
        claim::routes(),
        watch::routes(),
        collections::routes(),
        sequences::routes(),
        sessions::routes(),
        locks::routes(),
        elections::routes(),
        observe::routes(),
        barriers::routes(),
        latches::routes(),
        tasks::routes(),
        task_claim::routes(),
        cluster::routes(),
        faults::routes(),
        members::routes(),
        backup::routes(),
        users::routes(),
        roles::routes(),
        tokens::routes(),
        access::routes(),
        health::routes(),
        openapi::routes(),
    ]
}
