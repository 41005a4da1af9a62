//! `/errors/{code}`: what an error code means, for people. The `type` of every problem document leads here.
//!
//! Owns the words for each code, and both forms of them: the pages that a node serves, and docs/errors.md, which a test compares with
//! what stands here. Status, title and advice are the catalogue's (`quorate_api`).

use std::fmt::Write;

use quorate_api::{Applied, ErrorCode, Retry, code_name};
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::failure::Failure;
use utoipa_axum::routes;

use crate::context::Context;
use crate::described::Common;
use crate::headers;
use crate::output::response::{Outcome, ok};
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    Routes::new().add(Policy::node(Guard::None), routes!(page))
}

/// Says what an error code means. The `type` of a problem document is the path of its code.
#[utoipa::path(get, path = "/errors/{code}", tag = "node", operation_id = "error",
    params(
        ("code" = String, Path, description = "The code of a problem document.", example = "cas_mismatch"),
    ),
    responses(
        (status = 200, description = "A page for people.", body = String, content_type = "text/html"),
        (status = 404, description = "`not_found`: there is no such code.", body = quorate_api::Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn page(context: Context) -> Outcome {
    let name = context.name();
    let code = ErrorCode::ALL.into_iter().find(|code| code_name(*code) == name).ok_or_else(|| {
        Failure::new(ErrorCode::NotFound, Applied::No, "there is no such error code").at("path:code", "no such code")
    })?;
    Ok(ok(headers::HTML, html(code)))
}

/// When it comes, and what to do about it.
struct Words {
    when: &'static str,
    then: &'static str,
}

const fn words(when: &'static str, then: &'static str) -> Words {
    Words { when, then }
}

fn of(code: ErrorCode) -> Words {
    match code {
        ErrorCode::AlreadyExists => words(
            "An `insert`, or a `PUT` with `If-None-Match: *`, names a key that has an entry; `current` is that entry. Also a collection whose name is within or around another's, and a task whose id is that of a dead one, or, with `replace`, of one that is worked on or was completed.",
            "If you wrote it yourself in an earlier try, you are done: compare `current`. Else choose another key, or replace the entry on its `cas`. Requeue a dead task, or replace it.",
        ),
        ErrorCode::AlreadyQueued => words(
            "The session holds this lock or leads this election already, or waits for it, in another mode or with another value. A session has one place in each queue.",
            "Release or resign first, or use another session.",
        ),
        ErrorCode::CasMismatch => words(
            "The entry is not of the version that `cas` or `If-Match` named: somebody changed it since you read it, it is locked, or the tag is none that an entry can have, as a weak one in `If-Match`: `detail` names it. `current` is the entry as it is; of a collection it has the name as `key` and the rules as `value`.",
            "Decide anew by `current`, and write again on its `cas`. While the entry is locked, `cas` is null: wait until the lock ends.",
        ),
        ErrorCode::ChangeRefused => words(
            "A change of the members would take the cluster its majority, or makes no sense as things are; `detail` says why.",
            "Read `GET /v1/cluster/members`, mend what `detail` names, and ask again.",
        ),
        ErrorCode::Compacted => words(
            "The revision asked for, or that of the cursor or watch, is too old to be read. `oldest_revision` can be.",
            "Begin anew: read without a revision, page from the start, watch with `initial=true`. Nodes keep more history with `--history-keep-ms`.",
        ),
        ErrorCode::ConditionNotMet => words(
            "A condition (`if`), a tag in `If-None-Match`, or an operation of the patch does not fit the entry. `failed` says which, and what is there instead; `current` is the entry.",
            "Decide anew by `current`. The request is well formed, and may succeed later.",
        ),
        ErrorCode::DifferentSettings => words(
            "The lock, barrier or latch is in use with another number of slots, parties or counts.",
            "All who use it have to name the same number. Use that, or another name.",
        ),
        ErrorCode::GuardFailed => words(
            "The write was guarded by a fencing token, or a term, that does not hold the lock or lead the election any more. Nothing was written.",
            "Stop what you do under this lock: somebody else may hold it. Acquire it anew before you go on.",
        ),
        ErrorCode::InUse => words(
            "What is to be removed is needed by something else: a role that users have, say. `detail` names that.",
            "Take it away from those first.",
        ),
        ErrorCode::Internal => words(
            "The node met a bug or a fault of its own; its log has the rest, and `/v1/cluster/faults` keeps commands that faulted.",
            "Look at `applied`; where it is `unknown`, ask `GET /v1/requests/{id}`. Report the bug with what the node logged.",
        ),
        ErrorCode::InvalidArgument => words(
            "The request is not well formed, or a value is out of its bounds. `errors` points at each fault: a JSON pointer into the body, `query:NAME`, `header:NAME` or `path:NAME`.",
            "Mend each fault that `errors` names. The same request can only fail again, but where it names a revision that is yet to come: `retry` is `after_reading` there.",
        ),
        ErrorCode::InvalidDocument => words(
            "The document does not fit the rules of its collection. `errors` points at each fault, below `/value`.",
            "Mend the document, or the rules: `GET /v1/collections/{name}`.",
        ),
        ErrorCode::Locked => words(
            "Somebody holds a lock on the entry, or the lock or election that was asked for. Of the latter, `holders` and `waiters` say how many. A request that would have to wait is refused at once where as many wait already as `max_waiters` says, 1000 without it.",
            "Wait and ask again, with `wait_ms` where the route has it. `retry_after_ms` says how long nobody gets it, where that is known.",
        ),
        ErrorCode::MethodNotAllowed => words(
            "The path exists, and does not take this method. `Allow` lists those that it takes.",
            "See `/openapi.json`. A browser's `OPTIONS` is granted only to pages whose origins are configured (`--cors-origins`).",
        ),
        ErrorCode::NoLeader => words(
            "The node knows no leader at the moment: an election is under way, or it has no connection to a majority. Nothing was applied.",
            "Ask again after `Retry-After`, at another node if it lasts. `GET /v1/cluster/status` shows who is reached.",
        ),
        ErrorCode::NotFound => words(
            "There is no such key, name, session, id or path. Of a write: nothing was changed.",
            "Where you expected it, somebody has removed it, or it has expired. A path that is none is listed in `/openapi.json` if there is a similar one.",
        ),
        ErrorCode::NotLockHolder => words(
            "The entry is not locked, or the token does not hold the lock or the claim; or not any more.",
            "Stop what you do under it, and acquire it anew.",
        ),
        ErrorCode::NotReady => words(
            "The node is starting, stopping or catching up, or users and roles changed while the request was at work. Nothing was applied.",
            "Ask another node, or this one after `Retry-After`.",
        ),
        ErrorCode::PermissionDenied => words(
            "Whoever asks is known, and may not do this: `detail` names the permission that is missing, and on what. Or a web page of another \
             origin asks, or a name that is none of this node was asked: `errors` names the header `Origin` or `Host`.",
            "`GET /v1/access/self` shows what you may do. An administrator grants more with roles. Pages are let in by `--cors-origins`, \
             names by `--allowed-hosts`.",
        ),
        ErrorCode::PreconditionRequired => words(
            "The collection takes no write that does not say what it expects (`precondition_required`).",
            "Give `If-Match` or `cas`, a condition in `if`, or insert.",
        ),
        ErrorCode::Quarantined => words(
            "The node does not trust its own state: it differs from that of a majority. It serves nothing; `detail` says why.",
            "Ask another node. The node repairs itself where it can; see the operations guide.",
        ),
        ErrorCode::QuotaExceeded => words(
            "What is stored has reached the quota of the cluster, of a principal or of a prefix, or a disk is nearly full. `quota` names \
             that of a principal or a prefix, with its bound and what is used. Removals and releases still work.",
            "Remove what is not needed, or have the quota raised; then the same request succeeds.",
        ),
        ErrorCode::RequestIdReused => words(
            "The request id was used before for another request. Nothing was applied.",
            "Give each request an id of its own, and repeat it only with the very same request.",
        ),
        ErrorCode::SessionExpired => words(
            "There is no such session: it was not renewed in time, or was ended. What hung on it is gone.",
            "Create another one, and acquire again what you held.",
        ),
        ErrorCode::Timeout => words(
            "The deadline passed first. `applied` says whether the request took effect: `no`, or `unknown` where it was on its way.",
            "Send the same request under the same request id: it takes effect once, whatever became of the first try.",
        ),
        ErrorCode::TooDear => words(
            "The conditions, the operations of the patch, or the rules of the collection, would look through or move so much of one document that nothing else would be applied meanwhile. `detail` has the steps up to where it was given up, and how many one request may take. Nothing was changed.",
            "Ask with fewer of them, or split the document: what conditions look through, and patches move, is best a short list.",
        ),
        ErrorCode::TooLarge => words(
            "A key, a value, a body or an answer is over its limit; `detail` has the limit. `GET /v1/limits` has them all.",
            "Send less at once: split the value, page, narrow the prefix.",
        ),
        ErrorCode::TooManyRequests => words(
            "The node has as many requests, bytes or streams at work as it takes, or you have what your account may have. Nothing was applied.",
            "Wait for `Retry-After` (`retry_after_ms` is more exact), and ask again.",
        ),
        ErrorCode::Unauthenticated => words(
            "The request says not who asks, or the token or certificate does not hold, or not any more.",
            "Send `Authorization: Bearer TOKEN`, or a client certificate, that is valid.",
        ),
        ErrorCode::UniqueViolation => words(
            "Another document has these values in the fields of a unique index; `detail` names both.",
            "Choose other values, or change the other document first.",
        ),
        ErrorCode::UnknownField => words(
            "A JSON field or a query parameter does not exist. `errors` points at it.",
            "Look for a spelling mistake, or for a newer version of the cluster. Nothing is passed over in silence.",
        ),
        ErrorCode::UnsupportedMediaType => words(
            "The route does not take this `Content-Type`, or takes no compressed body, or a web page sends something else than JSON.",
            "`Accept`, `Accept-Post` or `Accept-Patch` of the answer lists what is taken.",
        ),
        ErrorCode::Other(_) => words("A newer node says it.", "Read the page of that node."),
    }
}

fn status(code: ErrorCode) -> String {
    let status = code.status();
    match code {
        ErrorCode::AlreadyExists => format!("{status}; 412 where `If-None-Match` asked for it"),
        ErrorCode::NotFound => format!("{status}; 412 where `If-Match` asked for it"),
        _ => status.to_string(),
    }
}

fn advice(code: ErrorCode) -> &'static str {
    match code.retry() {
        Retry::Never => "`never`: the same request can only fail again",
        Retry::AfterReading => "`after_reading`: read, and decide anew",
        Retry::SameRequestId => "`same_request_id`: send the same again under the same request id",
    }
}

/// docs/errors.md.
pub fn markdown() -> String {
    let mut text = String::from(
        "# Errors\n\n\
         Every error is a problem document ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)). Its `code` is one of these, its `type` is the path `/errors/CODE`, where each\n\
         node serves the section of that code. `applied` says whether the request took effect, `retry` what to do about it. Where a condition in a header failed\n\
         (`If-Match`, `If-None-Match`), the status is 412 whatever the code. `GET /v1/audit` names what was refused by the same codes (`refusal`).\n\
         Where an event stream is asked for by a reader that takes nothing but `text/event-stream`, as a browser's `EventSource`, 429, 500, 503 and 504 come as\n\
         `event: end` of a stream with status 200.\n\n\
         This page is written by `QUORATE_WRITE_DOCS=1 cargo test --workspace --test http_api errors`; its words stand in `node/http/src/operator/errors.rs`.\n",
    );
    for code in ErrorCode::ALL {
        let (name, title, Words { when, then }) = (code_name(code), code.title(), of(code));
        let (status, advice) = (status(code), advice(code));
        write!(text, "\n## {name}\n\n{title}. Status {status}. Retry {advice}.\n\n{when}\n\n{then}\n")
            .expect("a string takes all text");
    }
    text
}

fn html(code: ErrorCode) -> String {
    let (name, title, Words { when, then }) = (code_name(code), code.title(), of(code));
    let (status, advice, when, then) = (marked(&status(code)), marked(advice(code)), marked(when), marked(then));
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{name}: {title}</title>\n<h1><code>{name}</code></h1>\n\
         <p>{title}. Status {status}. Retry {advice}.</p>\n<p>{when}</p>\n<p>{then}</p>\n</html>\n"
    )
}

/// With `<code>` for what stands between backticks.
fn marked(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut html = String::new();
    for (number, piece) in escaped.split('`').enumerate() {
        match number % 2 {
            0 => html.push_str(piece),
            _ => write!(html, "<code>{piece}</code>").expect("a string takes all text"),
        }
    }
    html
}
