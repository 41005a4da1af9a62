//! `GET /v1/cluster/backup`: the whole state as one stream.
//!
//! Owns the answer and its way to the connection. How the state is read is [`backup`]'s.

use std::io;
use std::pin::Pin;
use std::task::{self, Poll};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Method, Response, header};
use hyper::body::{Body as HttpBody, Frame};
use quorate_api::{BACKUP_CONTENT_TYPE, Problem};
use quorate_machine::types::Revision;
use quorate_node_core::connection::monitor::Busy;
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::backup::{self, Pieces};
use quorate_node_core::gateway::failure::Failure;
use utoipa_axum::routes;

use crate::context::Context;
use crate::described::Common;
use crate::headers;
use crate::input::consistency;
use crate::input::extract::Query;
use crate::output::response::{Answer, Outcome};
use crate::routes::{Policy, Routes};

pub fn routes() -> Routes {
    Routes::new().add(Policy::node(Guard::Backup), routes!(get))
}

/// A backup of the whole cluster at one revision, as a stream. It takes no writes away from anybody and goes on beside them.
///
/// `Quorate-Revision` is its revision. Only a stream that came to its end is a backup; `quorate backup` and the Rust client
/// check that, `quorate-node backup verify` does at any time, and `quorate-node restore` makes a new cluster of it.
#[utoipa::path(get, path = "/v1/cluster/backup", tag = "cluster", operation_id = "backup",
    params(
        ("consistency" = Option<String>, Query, description = "`linearizable` (default): with every write acknowledged before; `local`: what this node has."),
        ("min_revision" = Option<u64>, Query, description = "Wait until this node has this revision."),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline for the begin of the stream, in milliseconds."),
    ),
    responses(
        (status = 200, description = "The stream.", body = Vec<u8>, content_type = "application/vnd.quorate.backup"),
        (status = 410, description = "`compacted`: the revision asked for is of before a restore.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let mut query = Query::parse(context.head.uri.query());
    let consistency = consistency::consistency(&mut query);
    query.finish()?;
    let place = backup::place(&context)?;
    context
        .caller()
        .admit_read(consistency, context.deadline, &requirement::on_prefix(Permission::Backup, b""))
        .await?;
    if context.head.method == Method::HEAD {
        return Ok(answer(Body::default(), context.api.node.position().revision));
    }
    let busy = context.take_busy()?;
    let (revision, pieces) = backup::begin(&context, place).await.map_err(Failure::closing)?;
    Ok(answer(Body::new(BackupBody { pieces, _busy: busy }), revision))
}

fn answer(body: Body, revision: Revision) -> Answer {
    let mut response = Response::new(body);
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(BACKUP_CONTENT_TYPE));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(headers::REVISION, revision.into());
    response
}

/// The body of the answer.
struct BackupBody {
    pieces: Pieces,
    _busy: Busy,
}

impl HttpBody for BackupBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.get_mut().pieces.poll_next(cx).map_ok(Frame::data)
    }
}
