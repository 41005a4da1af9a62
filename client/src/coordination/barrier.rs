//! Barriers: they open once so many sessions have entered, and close once all have left.

use std::time::{Duration, Instant};

use crate::api::{BarrierAnswer, BarrierState, EnterRequest, LeaveRequest};
use crate::call::error::Error;
use crate::call::operation::milliseconds;
use crate::call::request::{Call, Intent, RequestId, segment_path};
use crate::call::request_id::LastingId;
use crate::call::subject;
use crate::client::retry::{WAIT_ATTEMPT, WAIT_HELD_MAX, WAIT_PAUSE};
use crate::client::{Client, decode};
use crate::coordination::leaving::Leaving;
use crate::coordination::queue_place::leaves_nothing;
use crate::coordination::session::Session;

/// A barrier for one session, from [`Session::barrier`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(session: &quorate_client::Session) -> Result<(), quorate_client::Error> {
/// use std::time::Duration;
///
/// use quorate_client::api::BarrierState;
///
/// // One of three workers: none begins before all have loaded.
/// let barrier = session.barrier("loaded", 3).wait(Duration::from_secs(60));
/// let entered = barrier.enter().await?;
/// assert_eq!(entered.state, BarrierState::Open, "the others did not come in time");
/// // None ends before all are done.
/// barrier.leave().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Barrier<'a> {
    session: &'a Session,
    name: String,
    parties: u32,
    wait: Option<Duration>,
}

impl Session {
    /// The barrier of this name, which so many sessions open: all of them say the same number.
    pub fn barrier(&self, name: impl Into<String>, parties: u32) -> Barrier<'_> {
        Barrier { session: self, name: name.into(), parties, wait: None }
    }
}

impl Client {
    /// The barrier of this name as it is. One that nobody is in is empty.
    pub async fn barrier(&self, name: &str) -> Result<BarrierAnswer, Error> {
        self.read(path(name, "")?).await
    }
}

fn path(name: &str, verb: &str) -> Result<String, Error> {
    segment_path("/v1/barriers/", name, verb, "the name of a barrier")
}

/// The barrier that an answer is about, by its path, where that is another one.
fn found_at(call: &Call, body: &[u8]) -> Option<String> {
    path(&subject::strayed(call.target.as_str(), body)?.named, "").ok()
}

/// What is asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Enter,
    Leave,
}

impl Barrier<'_> {
    /// How long to wait for the others, at most; without it, as long as the session lives.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Enters, and waits until it is open. When the time is over before, it is left again first, and then the answer says `waiting`; if it
    /// cannot be left, the call fails with [`Error::NotLeft`]. Drop the future, and it is left in the background. Fails with `locked` while
    /// those who opened it have not all left.
    pub async fn enter(&self) -> Result<BarrierAnswer, Error> {
        let give_up = self.call(Verb::Leave, Duration::ZERO, RequestId::random())?;
        let place = path(&self.name, "")?;
        let mut leaving = Leaving::begin(self.session, place.clone(), give_up).await;
        let rounds = self.rounds(Verb::Enter, Some(&mut leaving));
        let entered = self.session.or_lost(rounds).await;
        match &entered {
            Ok(answer) if answer.state == BarrierState::Open => {
                self.session.enter(place);
                leaving.settle();
            }
            // Whoever is told that the time is over is in it no more.
            Ok(_) | Err(Error::Unavailable(_) | Error::Unknown(_)) => {
                self.session.or_lost(leaving.leave()).await.map_err(|error| self.not_left(error))?;
            }
            Err(error) if leaves_nothing(error) => leaving.settle(),
            // It is left in the background.
            Err(_) => {}
        }
        entered
    }

    fn not_left(&self, error: Error) -> Error {
        match error {
            lost @ Error::Session { .. } => lost,
            error => Error::NotLeft { barrier: self.name.clone(), source: error.into() },
        }
    }

    /// Leaves, and waits until the others have left too: then it can be entered anew. When the time is over before, the answer
    /// says what it is doing.
    pub async fn leave(&self) -> Result<BarrierAnswer, Error> {
        let answer = self.session.or_lost(self.rounds(Verb::Leave, None)).await?;
        self.session.exit(&path(&self.name, "")?);
        Ok(answer)
    }

    /// Asks until all are there, or gone, or the time is over.
    async fn rounds(&self, verb: Verb, mut leaving: Option<&mut Leaving>) -> Result<BarrierAnswer, Error> {
        let started = Instant::now();
        let left = || self.wait.map_or(Duration::MAX, |wait| wait.saturating_sub(started.elapsed()));
        let (mut undecided, mut opened) = (None, None);
        loop {
            // What nobody could tell the outcome of is asked again as it was.
            let (mut lasting, wait) = (undecided.take().unwrap_or_else(LastingId::new), left().min(WAIT_HELD_MAX));
            let id = lasting.current();
            if let Some(leaving) = &mut leaving {
                leaving.on_asked(self.call(verb, Duration::ZERO, id.clone())?);
            }
            let call = self.call(verb, wait, id)?;
            let reply = self.session.client().send(&call).await;
            let found = reply.as_ref().ok().and_then(|reply| found_at(&call, &reply.body));
            if let (Some(leaving), Some(other)) = (&mut leaving, found) {
                // The session keeps the barrier that it is in. It leaves one that it entered by mistake, on the path that got it.
                if self.session.has(&other) { leaving.settle() } else { leaving.is_at(other) }
            }
            let answered =
                reply.and_then(|reply| decode::<BarrierAnswer>(&call, &reply.address, reply.status, &reply.body));
            let answer = match answered {
                Ok(answer) => answer,
                Err(Error::Unavailable(_) | Error::Unknown(_)) if !left().is_zero() => {
                    undecided = Some(lasting);
                    tokio::time::sleep(WAIT_PAUSE).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let Some(leaving) = &mut leaving {
                leaving.on_answered();
            }
            if is_done(verb, &answer, opened) || left().is_zero() {
                return Ok(answer);
            }
            // Others are awaited.
            opened = answer.opened_revision;
        }
    }

    fn call(&self, verb: Verb, wait: Duration, id: RequestId) -> Result<Call, Error> {
        let (session, wait_ms) = (self.session.id().to_owned(), Some(milliseconds(wait)));
        let mut call = match verb {
            Verb::Enter => {
                let request = EnterRequest { session, parties: self.parties, wait_ms, request_id: None };
                Call::post_to(path(&self.name, "/enter")?, &request, Intent::Write(id))?
            }
            Verb::Leave => {
                let request = LeaveRequest { session, wait_ms, request_id: None };
                Call::post_to(path(&self.name, "/leave")?, &request, Intent::Write(id))?
            }
        };
        (call.hold, call.attempt) = (wait, Some(WAIT_ATTEMPT));
        Ok(call)
    }
}

/// Whether it is as it was wanted; `opened` is when it opened, by the answer before.
fn is_done(verb: Verb, answer: &BarrierAnswer, opened: Option<u64>) -> bool {
    match verb {
        Verb::Enter => answer.state == BarrierState::Open,
        // One that is not open, or open anew, has been empty in between.
        Verb::Leave => answer.state != BarrierState::Open || opened.is_some_and(|_| answer.opened_revision != opened),
    }
}
