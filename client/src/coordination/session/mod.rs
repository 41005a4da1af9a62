//! Sessions: a sign of life that entries, locks, leaderships and places in barriers hang on.
//!
//! Owns the handle. It is renewed in the background (`renewal`), and tells of itself only what is certain (`lease`). Sessions
//! of others are looked at by `client.session_by_id` (`by_id`).

mod by_id;
mod renewal;

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::api::{ErrorCode, SessionAnswer, SessionRequest};
use crate::call::error::Error;
use crate::call::loss::Loss;
use crate::call::moment::Moment;
use crate::call::operation::milliseconds;
use crate::call::request::{Call, RequestId};
use crate::client::Client;
use crate::client::lease::{Lease, SessionState};
use crate::client::registry::Renewed;

pub use by_id::SessionById;

/// A session that is created late is over before it is known: then another one is asked for, so many times.
const STARTS_MAX: u32 = 3;

/// A live session. Cheap to clone; when the last clone, guard and leadership of it are dropped, it is ended in the background.
/// A program that ends before that has happened leaves it to the cluster: [`Session::end`] does not.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use std::time::Duration;
///
/// let session = client.session().ttl(Duration::from_secs(5)).owner("web-3").await?;
/// // What hangs on it goes when this process does.
/// client.put_json("services/web-3", "10.0.0.9:8080").session(&session).await?;
/// let lock = session.lock("books").acquire().await?;
/// // All of it at once: the entry, the lock.
/// session.end().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

/// What clones share.
#[derive(Debug)]
pub(crate) struct Shared {
    client: Client,
    renewed: Arc<Renewed>,
    /// Places that are being given up in the background, and how often.
    leaving: Mutex<BTreeMap<String, u32>>,
    /// Places in queues that a handle has or waits for: the cluster knows one for each session, so two handles would share it, and
    /// the first to be dropped would give up that of the other.
    taken: Mutex<BTreeSet<String>>,
    /// Where what has to be done after a drop runs.
    runtime: Handle,
}

/// A session to be started, when awaited.
#[must_use = "does nothing until awaited"]
#[derive(Debug, Clone)]
pub struct StartSession<'a> {
    client: &'a Client,
    ttl: Option<Duration>,
    owner: Option<String>,
    labels: BTreeMap<String, String>,
    timeout: Option<Duration>,
}

impl Client {
    /// Starts a session that is renewed in the background for as long as it is held: 10 s to live without a renewal, if
    /// nothing else is said.
    pub fn session(&self) -> StartSession<'_> {
        StartSession { client: self, ttl: None, owner: None, labels: BTreeMap::new(), timeout: None }
    }
}

impl StartSession<'_> {
    /// How long it lives without a renewal, 100 ms to a day. Short: others go on soon after we have died. Long: we survive
    /// what goes on for long, such as the cluster electing a leader (about a second).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Whose it is, for people.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// What else is to be known of it; at most 16.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Deadline instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Asks for it without keeping it alive: for a session that others renew.
    pub async fn create(&self, id: RequestId) -> Result<SessionAnswer, Error> {
        let request = SessionRequest {
            ttl_ms: self.ttl.map(milliseconds),
            owner: self.owner.clone(),
            labels: (!self.labels.is_empty()).then(|| self.labels.clone()),
            request_id: None,
        };
        let mut call = Call::write("/v1/sessions", &request, id)?;
        call.timeout = self.timeout;
        self.client.fetch(call).await
    }

    async fn start(self) -> Result<Session, Error> {
        let mut starts = 1;
        loop {
            let sent = Moment::now();
            let answer = match self.create(RequestId::random()).await {
                // A retry found that an earlier try, whose answer was lost, had created one, and that it is over.
                Err(Error::Rejected(problem)) if problem.code == ErrorCode::SessionExpired && starts < STARTS_MAX => {
                    starts += 1;
                    continue;
                }
                answer => answer?,
            };
            let (ttl, renew_in) = (answer.ttl_ms, answer.renew_in_ms);
            let lease = Lease::begin(Duration::from_millis(ttl), Duration::from_millis(renew_in), sent);
            if lease.loss(Moment::now()).is_none() || starts == STARTS_MAX {
                return Session::keep(self.client, answer.session, lease).checked();
            }
            starts += 1;
        }
    }
}

impl<'a> IntoFuture for StartSession<'a> {
    type Output = Result<Session, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.start())
    }
}

impl Session {
    fn keep(client: &Client, id: String, lease: Lease) -> Self {
        let runtime = Handle::current();
        let renewed = Arc::new(Renewed { id, lease: Mutex::new(lease), changed: Notify::new() });
        let (leaving, taken) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { client: client.clone(), renewed, leaving, taken, runtime });
        let start = || shared.runtime.spawn(renewal::run(client.clone()));
        client.renewals().add(&shared.renewed, start);
        Self { shared }
    }

    /// Its id: the same for all nodes and clients, and never used twice.
    pub fn id(&self) -> &str {
        &self.shared.renewed.id
    }

    /// The client that it was started with.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// How long it lives without a renewal.
    pub fn ttl(&self) -> Duration {
        self.shared.renewed.lease.lock().ttl()
    }

    /// The state at this moment, by this machine's monotonic clock since the last confirmed renewal. A session is suspect until its next
    /// renewal is confirmed if the wall clock moved on by more: the machine was suspended. The state may change as soon as this returns;
    /// guard what must not happen twice.
    pub fn state(&self) -> SessionState {
        self.look().0
    }

    /// Why it is lost, if it is.
    pub fn loss(&self) -> Option<Loss> {
        self.shared.renewed.lease.lock().loss(Moment::now())
    }

    /// Nothing while it is known to live; else why that is not so.
    pub fn check(&self) -> Result<(), Error> {
        let (state, loss) = self.look();
        match state {
            SessionState::Ok => Ok(()),
            SessionState::Suspect | SessionState::Lost => Err(Error::Session { session: self.id().to_owned(), loss }),
        }
    }

    /// The state, and the reason of a loss. A session is renewed at once after a suspend of the machine: the task that renews it sleeps by
    /// the clock that stood still.
    fn look(&self) -> (SessionState, Option<Loss>) {
        let (lease, now) = (self.shared.renewed.lease.lock(), Moment::now());
        let (state, loss, was_suspended) = (lease.state(now), lease.loss(now), lease.was_suspended(now));
        drop(lease);
        if was_suspended {
            self.shared.client.renewals().look();
        }
        (state, loss)
    }

    /// Nothing unless it is lost: suspect is well enough to ask for more.
    pub(crate) fn check_alive(&self) -> Result<(), Error> {
        match self.loss() {
            None => Ok(()),
            loss => Err(Error::Session { session: self.id().to_owned(), loss }),
        }
    }

    /// The session, unless it is lost.
    fn checked(self) -> Result<Self, Error> {
        self.check_alive().map(|()| self)
    }

    /// Waits until it is something else than `known`, and tells what.
    pub async fn changed(&self, known: SessionState) -> SessionState {
        loop {
            // Before looking, so that a change after it is heard of.
            let told = self.shared.renewed.changed.notified();
            let (state, changes_at) = {
                let (lease, now) = (self.shared.renewed.lease.lock(), Moment::now());
                (lease.state(now), lease.changes_at(now))
            };
            if state != known {
                return state;
            }
            match changes_at {
                Some(at) => tokio::select! {
                    () = told => {}
                    () = tokio::time::sleep_until(at.into()) => {}
                },
                None => told.await,
            }
        }
    }

    /// Waits until it is lost.
    pub async fn lost(&self) -> Loss {
        let mut state = self.state();
        loop {
            if let Some(loss) = self.loss() {
                return loss;
            }
            state = self.changed(state).await;
        }
    }

    /// What was waited for, unless the session is lost before.
    pub(crate) async fn or_lost<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::select! {
            loss = self.lost() => Err(Error::Session { session: self.id().to_owned(), loss: Some(loss) }),
            done = work => match done {
                Err(Error::Rejected(problem)) if problem.code == ErrorCode::SessionExpired => {
                    self.on_over(Loss::Expired);
                    Err(Error::Session { session: self.id().to_owned(), loss: self.loss() })
                }
                done => done,
            },
        }
    }

    /// Ends it, and with it all that hangs on it: entries, locks, leaderships, places. It is lost here in any case.
    pub async fn end(&self) -> Result<(), Error> {
        self.on_over(Loss::Ended);
        match self.shared.client.session_by_id(self.id()).end().await {
            // It had ended by itself, or by an earlier call.
            Err(Error::Rejected(problem)) if problem.code == ErrorCode::SessionExpired => Ok(()),
            ended => ended.map(drop),
        }
    }

    fn on_over(&self, loss: Loss) {
        self.shared.renewed.lease.lock().on_over(loss, Moment::now());
        self.shared.renewed.changed.notify_waiters();
        self.shared.client.renewals().look();
    }

    /// Gives up this place, named by its path, after a drop; not at all when the runtime has ended.
    pub(crate) fn give_up(&self, place: String, work: impl Future<Output = ()> + Send + 'static) {
        *self.shared.leaving.lock().entry(place.clone()).or_default() += 1;
        let left = Left { session: self.clone(), place };
        self.shared.runtime.spawn(async move {
            work.await;
            drop(left);
        });
    }

    /// Takes a place in a queue, named by its path, for one handle; `None` while another one has it.
    pub(crate) fn take(&self, place: String) -> Option<Taken> {
        let is_free = self.shared.taken.lock().insert(place.clone());
        is_free.then(|| Taken { shared: Arc::clone(&self.shared), place })
    }

    /// Notes that the session itself is in this place, named by its path, without a handle.
    pub(crate) fn enter(&self, place: String) {
        self.shared.taken.lock().insert(place);
    }

    /// It is not in this place any more.
    pub(crate) fn exit(&self, place: &str) {
        self.shared.taken.lock().remove(place);
    }

    /// Tells whether a handle has this place, named by its path, or the session is in it.
    pub(crate) fn has(&self, place: &str) -> bool {
        self.shared.taken.lock().contains(place)
    }

    /// Waits until this place is not being given up any more: what is asked for before that would be given up too.
    pub(crate) async fn left(&self, place: &str) {
        loop {
            let told = self.shared.renewed.changed.notified();
            if !self.shared.leaving.lock().contains_key(place) {
                return;
            }
            told.await;
        }
    }
}

/// A place that one handle has, until this is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    shared: Arc<Shared>,
    place: String,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.shared.taken.lock().remove(&self.place);
    }
}

/// Says on drop that a place was given up, or that its end was left to the session.
struct Left {
    session: Session,
    place: String,
}

impl Drop for Left {
    fn drop(&mut self) {
        let shared = &self.session.shared;
        let mut leaving = shared.leaving.lock();
        match leaving.get_mut(&self.place) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(leaving.remove(&self.place)),
        }
        drop(leaving);
        shared.renewed.changed.notify_waiters();
    }
}

impl From<&Session> for String {
    fn from(session: &Session) -> Self {
        session.id().to_owned()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let now = Moment::now();
        let was_lost = self.renewed.lease.lock().loss(now).is_some();
        // Nobody renews it any more, from this moment on.
        self.renewed.lease.lock().on_over(Loss::Ended, now);
        self.client.renewals().look();
        // What is lost may have been taken over with a delay, which an end would cut short.
        if was_lost {
            return;
        }
        let (client, id) = (self.client.clone(), self.renewed.id.clone());
        self.runtime.spawn(async move {
            // Its time ends it otherwise.
            let _ = client.session_by_id(id).end().await;
        });
    }
}
