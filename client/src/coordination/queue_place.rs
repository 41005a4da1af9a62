//! A place in the queue of a lock or an election: asked for, waited in, held, given up.
//!
//! Owns the loop that waits. A place belongs to the session: whichever node a question reaches, it finds the same place. What
//! is asked for, and what it is called, is `lock`'s and `election`'s.

use std::time::{Duration, Instant};

use http::Method;
use serde::Deserialize;

use crate::api::{AcquireRequest, Applied, CampaignRequest, ErrorCode, Problem, ReleaseRequest, ResignRequest};
use crate::call::error::Error;
use crate::call::loss::Loss;
use crate::call::operation::milliseconds;
use crate::call::request::{Call, Intent, RequestId, segment_path};
use crate::call::request_id::LastingId;
use crate::call::subject;
use crate::client::pending::Pending;
use crate::client::retry::WAIT_PAUSE;
use crate::client::{Client, decode};
use crate::coordination::leaving::Leaving;
use crate::coordination::session::{Session, Taken};

/// Longest wait that nodes take.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);
/// A node holds a question back for a third of the session's time to live, but never longer: if the node has died silently,
/// another is to be asked while what was granted meanwhile still lives.
const POLL_MAX: Duration = Duration::from_secs(10);
/// And never shorter, since each question is an entry in the log.
const POLL_MIN: Duration = Duration::from_millis(500);
/// A node that is silent for so long is left for another, unless a sixth of the session's time to live is longer.
const ATTEMPT_MIN: Duration = Duration::from_millis(250);
/// At the end of a wait the node is to say so, not to send us back once more.
const POLL_BEYOND: Duration = Duration::from_secs(1);

/// A lock or an election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Queue {
    Lock(String),
    Election(String),
}

impl Queue {
    /// The path of what is done to it; its own for nothing.
    pub fn path(&self, verb: &str) -> Result<String, Error> {
        match self {
            Self::Lock(name) => segment_path("/v1/locks/", name, verb, "the name of a lock"),
            Self::Election(name) => segment_path("/v1/elections/", name, verb, "the name of an election"),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Lock(name) | Self::Election(name) => name,
        }
    }

    /// Another one of its kind.
    fn called(&self, name: String) -> Self {
        match self {
            Self::Lock(_) => Self::Lock(name),
            Self::Election(_) => Self::Election(name),
        }
    }

    /// Gives up what this token holds.
    pub fn release<'a, A>(&self, client: &'a Client, token: u64) -> Pending<'a, A> {
        self.give_up(client, Some(token), None)
    }

    /// Gives up whatever this session has there, a place too.
    pub fn leave<'a, A>(&self, client: &'a Client, session: &str) -> Pending<'a, A> {
        self.give_up(client, None, Some(session.to_owned()))
    }

    fn give_up<'a, A>(&self, client: &'a Client, token: Option<u64>, session: Option<String>) -> Pending<'a, A> {
        match self {
            Self::Lock(_) => {
                let request = ReleaseRequest { token, session, request_id: None };
                Pending::with(client, Method::POST, self.path("/release"), &request)
            }
            Self::Election(_) => {
                let request = ResignRequest { term: token, session, request_id: None };
                Pending::with(client, Method::POST, self.path("/resign"), &request)
            }
        }
    }
}

/// What is asked for, but for how long to wait.
#[derive(Debug, Clone)]
pub(crate) enum PlaceRequest {
    Lock(AcquireRequest),
    Election(CampaignRequest),
}

/// What answers to both say.
#[derive(Debug, Deserialize)]
struct Granted {
    /// Absent while others come first.
    #[serde(default, alias = "term", with = "quorate_api::decimal::optional")]
    token: Option<u64>,
}

/// Waits for a place until it holds: at most for `wait`, else as long as the session lives.
pub(crate) async fn take(
    session: &Session,
    queue: Queue,
    wanted: PlaceRequest,
    wait: Option<Duration>,
) -> Result<Held, Error> {
    session.check_alive()?;
    let taken = session.take(queue.path("")?).ok_or_else(|| {
        let name = queue.name();
        Error::Invalid(format!(
            "this session has `{name}` or waits for it already: give that up first, or ask with another session"
        ))
    })?;
    let give_up = queue.leave::<()>(session.client(), session.id()).into_call()?;
    let mut leaving = Leaving::begin(session, queue.path("")?, give_up).await;
    let waiting = Waiting { session, queue: &queue, wanted, started: Instant::now(), wait };
    let token = session.or_lost(waiting.rounds(&mut leaving)).await;
    if token.as_ref().map_or_else(leaves_nothing, |_| true) {
        leaving.settle();
    }
    Ok(Held { session: session.clone(), queue, token: token?, given_up: false, _taken: taken })
}

/// Whether an error says that there is no place of this question, or one that is another handle's. With any other the place of
/// an earlier answer may still be there, or the last question on its way.
pub(crate) fn leaves_nothing(error: &Error) -> bool {
    match error {
        Error::Invalid(_) => true,
        Error::Rejected(problem) => matches!(
            problem.code,
            ErrorCode::Locked | ErrorCode::AlreadyQueued | ErrorCode::DifferentSettings | ErrorCode::SessionExpired
        ),
        _ => false,
    }
}

struct Waiting<'a> {
    session: &'a Session,
    queue: &'a Queue,
    wanted: PlaceRequest,
    started: Instant,
    wait: Option<Duration>,
}

impl Waiting<'_> {
    /// Asks until the answer is final.
    async fn rounds(mut self, leaving: &mut Leaving) -> Result<u64, Error> {
        let client = self.session.client();
        let mut undecided = None;
        loop {
            // What nobody could tell the outcome of is asked again as it was: under another id it might be decided twice.
            // Once nodes may have forgotten that one, another does: a session has one place in a queue.
            let same = undecided.take().filter(|(_, lasting): &(Duration, LastingId)| lasting.is_fresh());
            let (left, mut lasting) = same.unwrap_or_else(|| (self.left(), LastingId::new()));
            let id = lasting.current();
            leaving.on_asked(self.call(left, Duration::ZERO, id.clone())?);
            let call = self.call(left, self.poll(left), id)?;
            let reply = client.send(&call).await;
            if let Some(other) = reply.as_ref().ok().and_then(|reply| self.found_at(&call, &reply.body)) {
                // A place of another handle is kept. One got by mistake is given up, on the path that got it.
                if self.session.has(&other) { leaving.settle() } else { leaving.is_at(other) }
            }
            match reply.and_then(|reply| decode::<Granted>(&call, &reply.address, reply.status, &reply.body)) {
                Ok(Granted { token: Some(token) }) => return Ok(token),
                Ok(Granted { token: None }) if left.is_zero() => return Err(self.too_late()),
                Ok(Granted { token: None }) => leaving.on_answered(),
                // No node could tell. The place is kept, so the same is asked again, wherever somebody answers.
                Err(Error::Unavailable(_) | Error::Unknown(_)) if !self.left().is_zero() => {
                    undecided = Some((left, lasting));
                    tokio::time::sleep(WAIT_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The place that an answer is about, where that is another one.
    fn found_at(&self, call: &Call, body: &[u8]) -> Option<String> {
        let strayed = subject::strayed(call.target.as_str(), body)?;
        self.queue.called(strayed.named).path("").ok()
    }

    fn left(&self) -> Duration {
        self.wait.map_or(WAIT_MAX, |wait| wait.saturating_sub(self.started.elapsed())).min(WAIT_MAX)
    }

    /// How long the node is to hold its answer back.
    fn poll(&self, left: Duration) -> Duration {
        let poll = (self.session.ttl() / 3).clamp(POLL_MIN, POLL_MAX);
        if left.is_zero() {
            Duration::ZERO
        } else if left <= poll {
            left + POLL_BEYOND
        } else {
            poll
        }
    }

    fn call(&mut self, left: Duration, poll: Duration, id: RequestId) -> Result<Call, Error> {
        let (wait_ms, poll_ms) = (Some(milliseconds(left)), Some(milliseconds(poll)));
        let mut call = match &mut self.wanted {
            PlaceRequest::Lock(request) => {
                (request.wait_ms, request.poll_ms) = (wait_ms, poll_ms);
                Call::post_to(self.queue.path("/acquire")?, request, Intent::Write(id))?
            }
            PlaceRequest::Election(request) => {
                (request.wait_ms, request.poll_ms) = (wait_ms, poll_ms);
                Call::post_to(self.queue.path("/campaign")?, request, Intent::Write(id))?
            }
        };
        call.hold = poll;
        call.attempt = Some((self.session.ttl() / 6).clamp(ATTEMPT_MIN, Duration::from_secs(3)));
        Ok(call)
    }

    /// The node says to wait on, but the time is over.
    fn too_late(&self) -> Error {
        let detail = format!("`{}` was not got in time", self.queue.name());
        Error::Rejected(Box::new(Problem::new(ErrorCode::Locked, Applied::No, detail)))
    }
}

/// What was got: given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    session: Session,
    queue: Queue,
    token: u64,
    given_up: bool,
    _taken: Taken,
}

impl Held {
    /// Whose it is.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What is held.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The token, while it certainly holds.
    pub fn token(&self) -> Result<u64, Error> {
        self.session.check().map(|()| self.token)
    }

    /// The token, whether it holds or not: for what the cluster checks.
    pub fn unchecked_token(&self) -> u64 {
        self.token
    }

    /// Waits until it is lost with its session.
    pub async fn lost(&self) -> Loss {
        self.session.lost().await
    }

    /// Gives it up. With an error it may not have been, which is then done in the background.
    pub async fn give_up(mut self) -> Result<(), Error> {
        let pending: Pending<'_, serde::de::IgnoredAny> = self.queue.release(self.session.client(), self.token);
        let done = pending.await;
        // After any other refusal it is still held: who may not give it up now may be let in later.
        self.given_up = match &done {
            Ok(_) => true,
            Err(error) => matches!(error.code(), Some(ErrorCode::NotLockHolder | ErrorCode::SessionExpired)),
        };
        done.map(drop)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.given_up || self.session.loss().is_some() {
            return;
        }
        let call = self.queue.release::<()>(self.session.client(), self.token).into_call();
        let (Ok(place), Ok(call)) = (self.queue.path(""), call) else { return };
        let session = self.session.clone();
        self.session.give_up(place, async move {
            // If it reaches no node, the end of the session gives it up.
            let _ = session.client().send(&call).await;
        });
    }
}
