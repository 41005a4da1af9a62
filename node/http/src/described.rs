//! What the OpenAPI document says of many operations: answers of several forms, and the errors that they have in common.
//!
//! Owns their texts, and the headers that whole kinds of operations take. Never knows an operation by name.

use std::collections::BTreeMap;

use quorate_api::{EntryView, WriteAnswer};
use quorate_node_core::gateway::auth::guard::Guard;
use utoipa::openapi::path::{Operation as Described, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Content, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses, PartialSchema};

use crate::routes::Operation;

/// The scheme of tokens.
pub const BEARER: &str = "bearer";
/// The scheme of client certificates.
pub const CERTIFICATE: &str = "certificate";

/// What a read of one entry shows.
#[derive(utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only described")]
pub enum ReadAnswer {
    /// The entry.
    Envelope(EntryView),
    /// With `raw`: the bare value, which can be any JSON.
    Bare(serde_json::Value),
}

/// What one operation answers, and what a write does that may be asked for its entry.
#[derive(utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only described")]
pub enum OpAnswer {
    /// What was written.
    Written(WriteAnswer),
    /// The entry that was read, or as it is after the write.
    Read(EntryView),
}

/// A name at the end of a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only described")]
pub struct NamePath {
    /// The name, percent-encoded, slashes too.
    #[param(example = "orders")]
    name: String,
}

/// The key of an entry in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only described")]
pub struct KeyPath {
    /// The key, percent-encoded; slashes may stand as they are. Whatever bytes it decodes to are the key.
    #[param(example = "orders/o42")]
    key: String,
}

/// The name of a queue in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only described")]
pub struct QueuePath {
    /// The queue, percent-encoded, slashes too.
    #[param(example = "mail", min_length = 1, max_length = 256)]
    queue: String,
}

/// A page of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only described")]
pub struct Page {
    /// Most of them in the page, 1 to 1000; 100 without it.
    #[param(example = 100)]
    limit: Option<u64>,
    /// Of the page before.
    cursor: Option<String>,
}

/// How a write to one entry is done.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only described")]
pub struct Write {
    /// Answer with the entry as it was before.
    prev: Option<bool>,
    /// Say what would happen, write nothing.
    dry_run: Option<bool>,
    /// Apply only while this holds of the entry: `FIELD OP VALUE`, like `status eq pending`, or criteria in JSON. FIELD is a path or a
    /// `$` name of metadata, OP one of those of `where`, VALUE is JSON or a word. May be there many times; all have to hold, else 412
    /// `condition_not_met`. Not with `If-None-Match: *`.
    #[param(rename = "if", example = json!(["status eq pending"]))]
    condition: Option<Vec<String>>,
    /// Apply only while `guard_token` holds the lock of this name.
    #[param(example = "reports")]
    guard_lock: Option<String>,
    /// Apply only while `guard_token` is the term of the leader of this election. Not together with `guard_lock`.
    guard_election: Option<String>,
    /// The fencing token, or the term.
    #[param(example = 43)]
    guard_token: Option<u64>,
}

/// Errors of every route.
pub struct Common;

impl IntoResponses for Common {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            ("400", "`invalid_argument`, `unknown_field`: `errors` points at each fault."),
            ("401", "`unauthenticated`: where authentication is required; not applied."),
            ("403", "`permission_denied`: `detail` names what is missing; not applied."),
            ("405", "`method_not_allowed`: see `Allow`."),
            (
                "413",
                "`too_large`: a key, value or body over its limit. `too_dear`: conditions or operations that take too much work.",
            ),
            ("429", "`too_many_requests`: not applied; see `Retry-After`."),
            ("500", "`internal`: a fault of the node."),
            ("503", "`no_leader`, `not_ready`, `quarantined`: not applied; see `Retry-After`."),
            ("504", "`timeout`: see `applied`."),
        ])
    }
}

/// Errors of every conditional write.
pub struct Conditional;

impl IntoResponses for Conditional {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            (
                "409",
                "`already_exists` (an `insert`; with `current`), `not_lock_holder`, `request_id_reused`, `session_expired`, `unique_violation`.",
            ),
            (
                "412",
                "`cas_mismatch` (what is wanted is not there), `condition_not_met` (what is not wanted is, or `failed` does not hold): `current` is the entry as it is. `guard_failed`: the token does not hold its lock. `not_found`, `already_exists`: where `If-Match` or `If-None-Match` asks for the contrary.",
            ),
            ("422", "`invalid_document`: not what the rules of the collection ask for; `errors` points at each fault."),
            ("423", "`locked`: somebody holds a lock on the entry."),
            ("428", "`precondition_required`: the collection takes no write without a token or a condition."),
            ("507", "`quota_exceeded`: the disk is nearly full; deletes still work."),
        ])
    }
}

/// The error of every command that takes a request id and has no other conflict.
pub struct Reused;

impl IntoResponses for Reused {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[("409", "`request_id_reused`")])
    }
}

/// Errors of every command that grows what is coordinated.
pub struct Changing;

impl IntoResponses for Changing {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[("507", "`quota_exceeded`: the disk is nearly full; renewals, releases and counts still work.")])
    }
}

/// Adds what follows from the kind of an operation, where its handler describes nothing better.
pub fn complete(described: &mut Described, operation: &Operation) {
    if operation.writes() {
        let text = "Makes retries safe; 1 to 128 printable ASCII characters. Where the body has a `request_id`, it is the same.";
        add_header(described, "Idempotency-Key", text, String::schema());
    }
    if operation.policy.guard != Guard::None {
        add_header(described, "Request-Timeout", "Deadline in milliseconds.", u64::schema());
    }
    described.security = Some(security(operation.policy.guard));
    if operation.takes_body() || described.request_body.is_some() {
        let refused = problem("`unsupported_media_type`: `detail` says which header to send.");
        described.responses.responses.entry("415".to_owned()).or_insert(RefOr::T(refused));
    }
}

/// How whoever asks may say who they are: in one way, or, where the node asks nobody, not at all.
fn security(guard: Guard) -> Vec<SecurityRequirement> {
    const NO_SCOPES: [&str; 0] = [];
    let by = |scheme| SecurityRequirement::new(scheme, NO_SCOPES);
    match guard {
        Guard::None => Vec::new(),
        Guard::Known | Guard::Admin | Guard::Backup | Guard::Monitor | Guard::Judged | Guard::Owned => {
            vec![by(BEARER), by(CERTIFICATE), SecurityRequirement::default()]
        }
    }
}

fn add_header(described: &mut Described, name: &str, description: &str, schema: RefOr<Schema>) {
    let parameters = described.parameters.get_or_insert_default();
    let is_there = |known: &RefOr<Parameter>| matches!(known, RefOr::T(known) if known.name == name);
    if !parameters.iter().any(is_there) {
        let header = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Header).required(Required::False);
        parameters.push(RefOr::T(header.description(Some(description)).schema(Some(schema)).build()));
    }
}

fn problems(list: &[(&str, &str)]) -> BTreeMap<String, RefOr<Response>> {
    list.iter().map(|(status, text)| ((*status).to_owned(), RefOr::T(problem(text)))).collect()
}

fn problem(description: &str) -> Response {
    let content = Content::new(Some(Ref::from_schema_name("Problem")));
    ResponseBuilder::new().description(description).content("application/problem+json", content).build()
}
