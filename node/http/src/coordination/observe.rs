//! `GET /v1/elections/{name}/observe`: each change of who leads, as it happens.
//!
//! Owns where an observation begins and what it sends. Holds no queue: what its peer has not taken is not read yet.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use quorate_api::{LeaderEvent, Problem, VacantEvent, WatchEndCode};
use quorate_machine::query::{FeedPosition, LeaderChange, Observed, Page, ReadPosition, StateFault};
use quorate_machine::types::{LockName, LockSpace, Name, Revision};
use quorate_node_core::backend::SharedNode;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::api::Api;
use quorate_node_core::gateway::auth::requirement::{self, Permission};
use quorate_node_core::gateway::caller::Watching;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::watch;
use quorate_node_core::limits;
use utoipa_axum::routes;

use crate::context::Context;
use crate::coordinate;
use crate::coordination::elections;
use crate::described::{Common, NamePath};
use crate::headers;
use crate::input::accept;
use crate::input::extract::Query;
use crate::output::response::Outcome;
use crate::routes::{Policy, Routes};
use crate::watch::sse::{self, Chunk, Source};
use crate::watch::{event, options};

pub fn routes() -> Routes {
    Routes::new().add(Policy::data(RequestClass::Coordination), routes!(get))
}

/// Observes an election: a stream of server-sent events.
///
/// First the present state, `leader` or `vacant`, then each change in order: who leads and what they say of themselves. None is
/// left out. `id` is a revision; with it as `Last-Event-ID` the stream goes on after that, at any node, without the present state.
/// Where nothing was sent for a while, `progress` says how far it is. A stream that its node ends says why with `end`. A reader that takes nothing but
/// `text/event-stream`, as a browser's `EventSource`, is told in the stream what passes, as in a watch; where changes after
/// `Last-Event-ID` can no longer be read it begins with `reset`, and the present state follows.
#[utoipa::path(get, path = "/v1/elections/{name}/observe", tag = "coordination", operation_id = "observe_election",
    params(
        NamePath,
        ("heartbeat_ms" = Option<u64>, Query, description = "After how long of silence to say how far the stream is: 500 to 60000; 5000 without it.", example = 5000),
        ("Last-Event-ID" = Option<String>, Header, description = "Go on after this: the last `id` seen.", example = "42"),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline for the begin of the stream, in milliseconds."),
    ),
    responses(
        (status = 200, description = "The stream; `data` of `leader` is shown.", body = LeaderEvent, content_type = "text/event-stream"),
        (status = 410, description = "`compacted`: what follows `Last-Event-ID` can no longer be read; begin anew without it.", body = Problem, content_type = "application/problem+json"),
        Common,
    ))]
pub async fn get(context: Context) -> Outcome {
    let mut query = Query::parse(context.head.uri.query());
    let heartbeat = options::heartbeat(&mut query);
    query.finish()?;
    let election = coordinate::name_of(context.name())?;
    let resume = options::last_event_id(&context.head)?.map(|position| position.revision);
    context.admit_read(&requirement::on_name(Permission::Read, election.as_str().as_bytes())).await?;
    let Some(place) = ObserverPermit::take(&context.api) else {
        return Err(Failure::too_many("this node has as many observers as it may"));
    };
    let Observed { at, found, .. } =
        context.api.node.elected(&election).map_err(|fault| Failure::from_fault(&fault))?;
    let mut first = Vec::new();
    let lost = resume.and_then(|revision| lost(revision, at));
    let mut begin = Vec::new();
    match &lost {
        Some(failure) if accept::takes_events_alone(&context.head) => {
            sse::reset(&mut begin, at.revision, None, Some(failure));
        }
        Some(failure) => return Err(failure.clone()),
        None => {}
    }
    let after = match resume {
        Some(revision) if lost.is_none() => revision,
        _ => {
            let change = found.unwrap_or((at.revision, None));
            event(&mut first, &election, &change, at.revision);
            at.revision
        }
    };
    let (sent_up_to, began) = (Arc::new(AtomicU64::new(after)), Instant::now());
    let election_name = election.clone();
    let body = ObserveBody { place, election, first: Some(first), sent_up_to, work: None, began };
    let name = election_name;
    let watching = Watching::of(&context.caller(), move |visit| {
        requirement::on_name(Permission::Read, name.as_str().as_bytes())(visit)
    });
    let mut response = sse::open(&context, body, heartbeat, watching, &begin)?;
    response.headers_mut().insert(headers::REVISION, at.revision.into());
    Ok(response)
}

/// Why what follows a revision cannot be shown, if so.
fn lost(revision: Revision, at: ReadPosition) -> Option<Failure> {
    if revision > at.revision {
        Some(Failure::future(options::LAST_EVENT_ID, revision, at))
    } else if !FeedPosition::after(revision).is_covered_from(at.oldest_revision) {
        Some(Failure::compacted(revision, at))
    } else {
        None
    }
}

/// Appends a change. Once it is seen everything up to `id` is.
fn event(out: &mut Vec<u8>, election: &Name, (revision, leader): &LeaderChange, id: Revision) {
    let (election, revision) = (election.to_string(), *revision);
    match leader {
        None => sse::event(out, "vacant", Some(id), &VacantEvent { election, revision }),
        Some(leader) => {
            let data = LeaderEvent {
                election,
                revision,
                term: leader.token,
                session: leader.session.to_string(),
                owner: leader.owner.clone(),
                value: elections::said(leader.value.as_ref()),
                since: coordinate::moment(leader.since),
            };
            sse::event(out, "leader", Some(id), &data);
        }
    }
}

/// One of the observers that the node has room for.
struct ObserverPermit(Arc<Api>);

impl ObserverPermit {
    fn take(api: &Arc<Api>) -> Option<Self> {
        let before = api.admission.observers.fetch_add(1, Ordering::Relaxed);
        let place = Self(Arc::clone(api));
        (before < limits::OBSERVERS_MAX).then_some(place)
    }
}

impl Drop for ObserverPermit {
    fn drop(&mut self) {
        self.0.admission.observers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An observation and where it is.
struct ObserveBody {
    place: ObserverPermit,
    election: Name,
    /// The present state, until it is sent.
    first: Option<Vec<u8>>,
    /// Everything up to this revision was sent. Shared with what is under way, which goes on from there.
    sent_up_to: Arc<AtomicU64>,
    /// The next changes, once there are some. There only while it is waited for.
    work: Option<BoxFuture<'static, Result<Found, StateFault>>>,
    began: Instant,
}

type Found = Observed<Page<LeaderChange>>;

/// Whether changes may be missing between what was sent and what is found.
fn has_gap(found: &Found, sent_up_to: Revision) -> bool {
    !FeedPosition::after(sent_up_to).is_covered_from(found.at.oldest_revision)
}

impl ObserveBody {
    fn read(backend: &SharedNode, election: &Name, after: Revision) -> Result<Found, StateFault> {
        backend.elected_after(election, after, limits::OBSERVED_CHANGES_MAX)
    }

    /// Waits for changes.
    fn next(&self) -> BoxFuture<'static, Result<Found, StateFault>> {
        let (api, election) = (Arc::clone(&self.place.0), self.election.clone());
        let sent_up_to = Arc::clone(&self.sent_up_to);
        Box::pin(async move {
            let waker = LockName { space: LockSpace::Election, name: election.clone() }.waker();
            loop {
                let mut news = None;
                let wait = Duration::from_millis(limits::WAIT_MS_MAX);
                let read = || {
                    let after = sent_up_to.load(Ordering::Relaxed);
                    let found = Self::read(&api.node, &election, after)?;
                    let is_news = !found.found.items.is_empty() || has_gap(&found, after);
                    news = Some(found).filter(|_| is_news);
                    Ok(is_news)
                };
                api.node.wait_woken(&waker, wait, Box::new(read)).await?;
                if let Some(found) = news {
                    return Ok(found);
                }
            }
        })
    }

    /// What is sent of what was found.
    fn show(&mut self, found: &Found) -> Chunk {
        if has_gap(found, self.sent_up_to.load(Ordering::Relaxed)) {
            let oldest = found.at.oldest_revision;
            let detail = format!("what follows has been compacted; the oldest revision that can be read is {oldest}");
            return Chunk::Last(self.end(WatchEndCode::Compacted, detail, Some(oldest)));
        }
        let mut out = Vec::new();
        for change in &found.found.items {
            event(&mut out, &self.election, change, change.0);
            self.sent_up_to.store(change.0, Ordering::Relaxed);
        }
        Chunk::Some(out.into())
    }

    /// The last words, behind the present state where that was not sent yet: they say that all was, up to a revision that covers it.
    fn end(&mut self, code: WatchEndCode, detail: String, oldest: Option<Revision>) -> Bytes {
        let mut out = self.first.take().unwrap_or_default();
        out.extend_from_slice(&event::end(code, detail, oldest, Some(self.sent_up_to.load(Ordering::Relaxed))));
        out.into()
    }
}

impl Source for ObserveBody {
    fn poll_chunk(&mut self, cx: &mut task::Context<'_>) -> Poll<io::Result<Chunk>> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Poll::Ready(Ok(Chunk::Some(first.into())));
        }
        if self.work.is_none() {
            self.work = Some(self.next());
        }
        let work = self.work.as_mut().expect("made a line above");
        let found = std::task::ready!(work.as_mut().poll(cx));
        self.work = None;
        match found {
            Ok(found) => Poll::Ready(Ok(self.show(&found))),
            Err(fault) => {
                tracing::error!(%fault, "an observer met a fault of this node");
                Poll::Ready(Err(io::Error::other(fault)))
            }
        }
    }

    /// Says how far it is, so that a silent election is not overtaken by compaction.
    fn heartbeat(&mut self) -> Bytes {
        let after = self.sent_up_to.load(Ordering::Relaxed);
        let Ok(found) = Self::read(&self.place.0.node, &self.election, after) else { return sse::COMMENT };
        if !found.found.items.is_empty() || has_gap(&found, after) {
            // It is about to be sent.
            return sse::COMMENT;
        }
        self.sent_up_to.store(found.at.revision, Ordering::Relaxed);
        let mut out = Vec::new();
        event::progress(&mut out, "progress", found.at.revision);
        out.into()
    }

    fn end_reason(&mut self) -> Option<Bytes> {
        let (code, detail) = watch::end_reason(&self.place.0.node, self.began)?;
        Some(self.end(code, detail, None))
    }

    fn refused(&mut self, code: WatchEndCode, detail: String) -> Bytes {
        // What was read last was not sent.
        event::end(code, detail, None, None).into()
    }

    fn ended(&mut self, code: WatchEndCode, detail: String) -> Bytes {
        self.end(code, detail, None)
    }
}
