//! A stream of watches: etcd's service `Watch`.
//!
//! Owns ids, the order of what is said of each watch, and that progress is only told where it is true of all watches of the stream.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{Stream, StreamExt};
use quorate_etcd_api::entry::Event;
use quorate_etcd_api::watch::{
    WatchCreateRequest, WatchCreateRequestFilterType, WatchRequest, WatchRequestRequestUnion, WatchResponse,
};
use quorate_etcd_api::{Error, Message};
use quorate_machine::query::{FeedPosition, WatchRange};
use quorate_machine::types::{Key, KeyRange, Revision};
use quorate_node_core::backend::Consistency;
use quorate_node_core::gateway::admission::accounts::Spender;
use quorate_node_core::gateway::auth::requirement::{Permission, Requirement, Visit};
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::caller::Watching;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::watch;
use quorate_node_core::limits;
use tokio::time::Interval;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::header::header;
use crate::range;
use crate::roused::Roused;
use crate::status::{Flow, Status, known};
use crate::watcher::{Step, View, Watcher};

/// After how long of silence those are told how far they are that asked for it.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// The id in answers that are about no watch, or about all.
const NO_WATCH: i64 = -1;
const EMPTY_RANGE: &str = "mvcc: watcher range is empty";
const DUPLICATE_ID: &str = "mvcc: duplicate watch ID provided on the WatchStream";

/// Watches keys.
pub fn open(call: Arc<Call>, requests: Flow<WatchRequest>, stop: CancellationToken) -> Flow<WatchResponse> {
    Watches::new(call, requests, stop).boxed()
}

/// Opens the one watch of a call that is no Watch. The stream ends with that watch, with a status that says why. It is never `Cancelled`, which
/// clients take for their own doing.
pub fn open_one(call: Arc<Call>, request: WatchCreateRequest) -> Flow<WatchResponse> {
    let create = WatchRequest { request_union: Some(WatchRequestRequestUnion::CreateRequest(request)) };
    let requests = futures::stream::once(async { Ok(create) }).chain(futures::stream::pending()).boxed();
    Watches { is_of_one: true, ..Watches::new(call, requests, CancellationToken::new()) }.boxed()
}

type Answer = Result<WatchResponse, Status>;

/// All watches of a stream.
struct Watches {
    call: Arc<Call>,
    requests: Flow<WatchRequest>,
    /// Whether the client may ask for more.
    is_open: bool,
    /// Whether the stream ends with its watch, and says why by its status.
    is_of_one: bool,
    /// A watch that is about to begin. What was asked after it waits.
    creating: Option<BoxFuture<'static, Result<Created, Refused>>>,
    watchers: BTreeMap<i64, Running>,
    /// Those that are to be looked at.
    roused: Roused,
    next_id: i64,
    /// The watch that was looked at last.
    looked_at: i64,
    answers: VecDeque<Answer>,
    /// Progress was asked for, and could not be told yet.
    owes_progress: bool,
    look: Interval,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    is_over: bool,
    began: Instant,
}

struct Running {
    watcher: Watcher,
    /// What it waits with.
    waker: Waker,
    /// When something of it was last sent.
    sent: Instant,
}

/// A watch that can begin.
struct Created {
    id: Option<i64>,
    watcher: Watcher,
    at: Revision,
}

/// A watch that cannot.
enum Refused {
    Because(Reason),
    /// What it asks for can no longer be read; the oldest revision that can.
    Compacted {
        id: Option<i64>,
        oldest: Revision,
    },
}

/// Why a watch does not begin or go on.
struct Reason {
    status: Status,
    /// The same where the stream goes on.
    text: String,
}

impl Reason {
    fn invalid(text: &str) -> Self {
        Self { status: Status::invalid_argument(text), text: text.to_owned() }
    }
}

impl From<Error> for Reason {
    fn from(error: Error) -> Self {
        Self { status: known(error), text: error.text().to_owned() }
    }
}

impl From<Failure> for Reason {
    /// In the form that clients written in Go read.
    fn from(failure: Failure) -> Self {
        let status = Status::from(failure);
        let text = format!("rpc error: code = {:?} desc = {}", status.code(), status.message());
        Self { status, text }
    }
}

impl Watches {
    fn new(call: Arc<Call>, requests: Flow<WatchRequest>, stop: CancellationToken) -> Self {
        Self {
            call,
            requests,
            is_open: true,
            is_of_one: false,
            creating: None,
            watchers: BTreeMap::new(),
            roused: Roused::default(),
            next_id: 0,
            looked_at: NO_WATCH,
            answers: VecDeque::new(),
            owes_progress: false,
            look: tokio::time::interval(Duration::from_millis(limits::WATCH_LOOK_MS)),
            stop: Box::pin(stop.cancelled_owned()),
            is_over: false,
            began: Instant::now(),
        }
    }

    /// How far what is read here has come.
    fn read_up_to(&self) -> Revision {
        self.call.api.node.position().revision
    }

    /// An answer that shows nothing of the state.
    fn aside(&self, watch_id: i64) -> WatchResponse {
        self.response(watch_id, self.call.api.revision())
    }

    fn response(&self, watch_id: i64, revision: Revision) -> WatchResponse {
        WatchResponse { header: Some(header(&self.call.api, revision)), watch_id, ..WatchResponse::default() }
    }

    fn take_request(&mut self, request: WatchRequest) {
        match request.request_union {
            Some(WatchRequestRequestUnion::CreateRequest(request)) => {
                self.creating = Some(Box::pin(create(Arc::clone(&self.call), request)));
            }
            // That of a watch that there is not is passed over.
            Some(WatchRequestRequestUnion::CancelRequest(request)) => self.cancel(request.watch_id),
            Some(WatchRequestRequestUnion::ProgressRequest(_)) => self.owes_progress = true,
            None => {}
        }
    }

    fn cancel(&mut self, id: i64) {
        if self.watchers.remove(&id).is_some() {
            let canceled = WatchResponse { canceled: true, ..self.aside(id) };
            self.answers.push_back(Ok(canceled));
        }
    }

    fn take_created(&mut self, created: Result<Created, Refused>) {
        match created {
            Ok(Created { id, watcher, at }) => match self.free_id(id) {
                Some(id) => {
                    let created = WatchResponse { created: true, ..self.response(id, at) };
                    self.answers.push_back(Ok(created));
                    let waker = self.roused.waker(id);
                    self.watchers.insert(id, Running { watcher, waker, sent: Instant::now() });
                }
                None => self.refuse(Reason::invalid(DUPLICATE_ID)),
            },
            Err(Refused::Because(reason)) => self.refuse(reason),
            Err(Refused::Compacted { id, oldest }) => match self.free_id(id) {
                Some(id) => {
                    let created = WatchResponse { created: true, ..self.aside(id) };
                    self.answers.push_back(Ok(created));
                    self.cancel_compacted(id, oldest);
                }
                None => self.refuse(Reason::invalid(DUPLICATE_ID)),
            },
        }
    }

    fn refuse(&mut self, reason: Reason) {
        let Reason { status, text: cancel_reason } = reason;
        let refused = WatchResponse { created: true, canceled: true, cancel_reason, ..self.aside(NO_WATCH) };
        self.tell_end(refused, status);
    }

    /// Ends a watch, and tells its client the reason.
    fn cancel_because(&mut self, id: i64, reason: Reason) {
        self.watchers.remove(&id);
        let Reason { status, text: cancel_reason } = reason;
        let canceled = WatchResponse { canceled: true, cancel_reason, ..self.aside(id) };
        self.tell_end(canceled, status);
    }

    /// Tells how a watch ended: by a response, or by a status where the stream is of it alone.
    fn tell_end(&mut self, response: WatchResponse, status: Status) {
        self.answers.push_back(if self.is_of_one { Err(status) } else { Ok(response) });
    }

    /// What follows is gone: the watch is over, and its client reads anew from this revision on.
    fn cancel_compacted(&mut self, id: i64, oldest: Revision) {
        self.watchers.remove(&id);
        let canceled = WatchResponse {
            canceled: true,
            // The first from which a watch can begin.
            compact_revision: oldest as i64 + 1,
            ..self.aside(id)
        };
        self.tell_end(canceled, known(Error::Compacted));
    }

    /// The id that a new watch gets; `None` where the one that it wants is taken.
    fn free_id(&mut self, wanted: Option<i64>) -> Option<i64> {
        if let Some(id) = wanted {
            return (!self.watchers.contains_key(&id)).then_some(id);
        }
        while self.watchers.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        self.next_id += 1;
        Some(self.next_id - 1)
    }

    /// Looks once at each watch that may have something to say, or until there is enough to be sent: what many watches have to say at one
    /// moment is not held in memory for a client that does not read it. Goes on behind the one that was looked at last.
    fn poll_watchers(&mut self, cx: &mut Context<'_>) -> Result<(), Status> {
        let mut bytes = 0;
        for id in self.roused.take(self.looked_at, cx.waker()) {
            if bytes >= limits::WATCH_CHUNK_BYTES {
                self.roused.rouse(id);
                continue;
            }
            let Some(running) = self.watchers.get_mut(&id) else { continue };
            self.looked_at = id;
            let step = running.watcher.poll_next(&mut Context::from_waker(&running.waker));
            let Poll::Ready(step) = step else { continue };
            running.sent = Instant::now();
            // It may have more.
            self.roused.rouse(id);
            match step {
                Ok(Step::Events(events)) => {
                    bytes += events.iter().map(Message::encoded_len).sum::<usize>();
                    self.send(id, events);
                }
                Ok(Step::Compacted(at)) => self.cancel_compacted(id, at.oldest_revision),
                Err(fault) => {
                    tracing::error!(%fault, "a watch met a fault of this node");
                    return Err(Failure::from_fault(&fault).into());
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, id: i64, events: Vec<Event>) {
        let Some(running) = self.watchers.get(&id) else { return };
        // Judged after it was read: what took the right away came before what is read from now on.
        if running.watcher.watching.as_ref().is_some_and(|watching| watching.end().is_some()) {
            return self.cancel_because(id, Error::PermissionDenied.into());
        }
        let last = events.last().and_then(|event| event.kv.as_ref()).map_or(0, |kv| kv.mod_revision as u64);
        let parts = if running.watcher.view.fragment { fragments(events) } else { vec![events] };
        let count = parts.len();
        for (part, events) in parts.into_iter().enumerate() {
            let fragment = part + 1 < count;
            self.answers.push_back(Ok(WatchResponse { events, fragment, ..self.response(id, last) }));
        }
    }

    /// Tells how far all watches are, if that was asked for and all have everything up to one revision.
    fn tell_progress(&mut self) {
        if !self.owes_progress || !self.answers.is_empty() {
            return;
        }
        if self.watchers.is_empty() {
            self.owes_progress = false;
            return;
        }
        // One that begins later has nothing of what is told yet.
        let now = self.read_up_to();
        if self.watchers.values().any(|running| running.watcher.view.first > now) {
            return;
        }
        let synced: Option<Vec<Revision>> =
            self.watchers.values_mut().map(|running| running.watcher.synced()).collect();
        let Some(synced) = synced else { return };
        self.owes_progress = false;
        let revision = synced.into_iter().min().unwrap_or(now);
        self.answers.push_back(Ok(self.response(NO_WATCH, revision)));
    }

    /// Looks, now and then, whether this node should go on, which watches have to end, and which clients want to know how far they are.
    fn look(&mut self) -> Result<(), Status> {
        if watch::end_reason(&self.call.api.node, self.began).is_some() {
            return Err(known(Error::NoLeader));
        }
        let ids: Vec<i64> = self.watchers.keys().copied().collect();
        for id in ids {
            let Some(running) = self.watchers.get_mut(&id) else { continue };
            if running.watcher.watching.as_ref().is_some_and(|watching| watching.end().is_some()) {
                self.send(id, Vec::new());
                continue;
            }
            if let Some(failure) = watch::crowded_out(&mut running.watcher.place) {
                self.cancel_because(id, failure.into());
                continue;
            }
            if running.watcher.view.progress
                && running.sent.elapsed() >= PROGRESS_EVERY
                && let Some(revision) = running.watcher.synced()
            {
                running.sent = Instant::now();
                let told = self.response(id, revision);
                self.answers.push_back(Ok(told));
            }
        }
        Ok(())
    }

    /// Ends with these words.
    fn end(&mut self, status: Status) -> Poll<Option<Answer>> {
        self.is_over = true;
        self.watchers.clear();
        Poll::Ready(Some(Err(status)))
    }
}

impl Stream for Watches {
    type Item = Answer;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        loop {
            if let Some(answer) = this.answers.pop_front() {
                return Poll::Ready(Some(answer));
            }
            if this.stop.as_mut().poll(cx).is_ready() {
                return this.end(known(Error::Stopped));
            }
            if let Some(creating) = &mut this.creating {
                if let Poll::Ready(created) = creating.as_mut().poll(cx) {
                    this.creating = None;
                    this.take_created(created);
                    continue;
                }
            } else if this.is_open {
                match this.requests.poll_next_unpin(cx) {
                    Poll::Ready(Some(Ok(request))) => {
                        this.take_request(request);
                        continue;
                    }
                    Poll::Ready(Some(Err(status))) => return this.end(status),
                    Poll::Ready(None) => this.is_open = false,
                    Poll::Pending => {}
                }
            }
            if !this.is_open && this.creating.is_none() && this.watchers.is_empty() {
                // The client has ended its side, and nothing goes on.
                this.is_over = true;
                return Poll::Ready(None);
            }
            if let Err(status) = this.poll_watchers(cx) {
                return this.end(status);
            }
            while this.look.poll_tick(cx).is_ready() {
                if let Err(status) = this.look() {
                    return this.end(status);
                }
            }
            this.tell_progress();
            if this.answers.is_empty() {
                return Poll::Pending;
            }
        }
    }
}

/// Finds out whether a watch can begin, and from where.
async fn create(call: Arc<Call>, request: WatchCreateRequest) -> Result<Created, Refused> {
    let because = |failure: Failure| Refused::Because(failure.into());
    let id = Some(request.watch_id).filter(|id| *id != 0);
    let start = u64::try_from(request.start_revision).map_err(|_| Refused::Because(Error::Compacted.into()))?;
    let range = watched(&request.key, &request.range_end)?;
    let backend = &call.api.node;
    if !call.has_room_for_watch() {
        return Err(Refused::Because(Error::RequestTooManyRequests.into()));
    }
    let deadline = Instant::now() + call.timeout;
    let of_range = range.clone();
    let wanted = move |visit: &mut Visit<'_>| visit(Requirement::on_range(Permission::Read, &of_range));
    call.caller().admit_read(Consistency::Linearizable, deadline, &wanted).await.map_err(because)?;
    let at = backend.position();
    // A start in the future is one from now on that shows nothing before it.
    let after = if start == 0 { at.revision } else { at.revision.min(start - 1) };
    let position = FeedPosition::after(after);
    if start != 0 && !position.is_covered_from(at.oldest_revision) {
        return Err(Refused::Compacted { id, oldest: at.oldest_revision });
    }
    let filtered = |filter: WatchCreateRequestFilterType| request.filters.contains(&i32::from(filter));
    let view = View {
        first: start,
        puts: !filtered(WatchCreateRequestFilterType::Noput),
        deletes: !filtered(WatchCreateRequestFilterType::Nodelete),
        prev: request.prev_kv,
        fragment: request.fragment,
        progress: request.progress_notify,
    };
    let counted = call.account().map(Spender::watch).transpose().map_err(because)?;
    let place = call.watch_place().map_err(because)?;
    let watching = Watching::of(&call.caller(), wanted);
    let watch = backend.feed().watch(watch_range(range), position);
    let watcher = Watcher::new(&call, watch, view, watching, (counted, place));
    Ok(Created { id, watcher, at: at.revision })
}

/// What is watched; without a key, from the first one on.
fn watched(key: &Bytes, range_end: &Bytes) -> Result<KeyRange, Refused> {
    let from = if key.is_empty() && range_end.is_empty() { &Bytes::from_static(&[0]) } else { key };
    // By what was asked for: a name that is too long for a key is watched as any, and there never is a change of it.
    let is_empty = !matches!(&range_end[..], [] | [0]) && range_end <= from;
    if is_empty { Err(Refused::Because(Reason::invalid(EMPTY_RANGE))) } else { Ok(range::span(from, range_end)) }
}

fn watch_range(range: KeyRange) -> WatchRange {
    match range.key().and_then(|key| Key::new(key).ok()) {
        Some(key) => WatchRange::Key(key),
        None => WatchRange::span(range.start().to_vec(), range.end().map(<[u8]>::to_vec)),
    }
}

/// In parts that are not too long, one event at least in each.
fn fragments(events: Vec<Event>) -> Vec<Vec<Event>> {
    let (mut parts, mut bytes) = (vec![Vec::new()], 0);
    for event in events {
        let length = event.encoded_len();
        if bytes + length > limits::ETCD_FRAGMENT_BYTES && bytes > 0 {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += length;
        if let Some(part) = parts.last_mut() {
            part.push(event);
        }
    }
    parts
}
