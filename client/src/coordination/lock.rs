//! Locks and semaphores.
//!
//! Owns the handle of a lock that is held, and its fencing token. Waiting for it is `queue_place`'s.

use std::time::Duration;

use crate::api::{AcquireRequest, CheckAnswer, Guard, LockAnswer, LockList, LockMode, ReleaseAnswer};
use crate::call::error::Error;
use crate::call::loss::Loss;
use crate::call::operation::milliseconds;
use crate::call::request::push_query;
use crate::client::Client;
use crate::client::pages::Pages;
use crate::client::pending::Pending;
use crate::coordination::queue_place::{self, Held, PlaceRequest, Queue};
use crate::coordination::session::Session;

/// A lock to be acquired, from [`Session::lock`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(session: &quorate_client::Session) -> Result<(), quorate_client::Error> {
/// use std::time::Duration;
///
/// use quorate_client::api::ErrorCode;
///
/// match session.lock("books").wait(Duration::from_secs(5)).acquire().await {
///     Err(error) if error.code() == Some(ErrorCode::Locked) => println!("somebody else has the books"),
///     other => println!("ours, with the token {}", other?.token()?),
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "asks for nothing until it is acquired"]
#[derive(Debug, Clone)]
pub struct Lock<'a> {
    session: &'a Session,
    name: String,
    request: AcquireRequest,
    wait: Option<Duration>,
}

impl Session {
    /// The lock of this name, to be acquired for this session: exclusively, and waiting as long as it takes, if nothing else is
    /// said. Locks are granted in the order in which they were asked for. A session has a lock once: what is to exclude one
    /// another takes a session each.
    pub fn lock(&self, name: impl Into<String>) -> Lock<'_> {
        let request = AcquireRequest { session: self.id().to_owned(), ..AcquireRequest::default() };
        Lock { session: self, name: name.into(), request, wait: None }
    }
}

impl Lock<'_> {
    /// Beside any number of others that share; exclusive holders exclude all of them.
    pub fn shared(mut self) -> Self {
        self.request.mode = Some(LockMode::Shared);
        self
    }

    /// A semaphore: so many may hold it at once. All have to say the same number.
    pub fn slots(mut self, slots: u32) -> Self {
        self.request.slots = Some(slots);
        self
    }

    /// How long nobody gets it after our session was not renewed in time, at most a minute: for work that is still under way
    /// and takes no guard. A lock that is released, and a session that is ended, cost nobody this time.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.request.delay_ms = Some(milliseconds(delay));
        self
    }

    /// How long to wait for it, at most; then it fails with `locked`.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Bounds the queue in which this request waits, itself included; 1,000 without it. The request fails with `locked` if that many wait
    /// already.
    pub fn max_waiters(mut self, most: u32) -> Self {
        self.request.max_waiters = Some(most);
        self
    }

    /// Fails with `locked` where somebody else holds it.
    pub fn no_wait(self) -> Self {
        self.wait(Duration::ZERO)
    }

    /// Waits until it is ours. Drop the future, and the place in the queue is given up. Fails with [`Error::Session`] when the
    /// session is lost meanwhile, and with [`Error::Invalid`] at once where this session has the lock or waits for it already. A node that is lost is left for another, where the place is the same.
    pub async fn acquire(self) -> Result<LockGuard, Error> {
        let held = queue_place::take(self.session, Queue::Lock(self.name), PlaceRequest::Lock(self.request), self.wait)
            .await?;
        Ok(LockGuard { held })
    }
}

/// A lock that is held until this is released or dropped, or its session is lost.
///
/// Locally nobody can be sure of a lock: we may be stopped for a minute after we looked. What must not happen after it is lost
/// has to say the token to whoever does it: to the cluster with [`crate::Write::guarded_by`], to others with
/// [`LockGuard::token`], which is greater than that of every holder before.
///
/// # Examples
///
/// ```no_run
/// # async fn example(session: &quorate_client::Session) -> Result<(), quorate_client::Error> {
/// let lock = session.lock("books").acquire().await?;
/// let client = session.client();
/// // Refused, should the lock be lost before this is applied.
/// client.put_json("books/total", &4).guarded_by(&lock).await?;
/// lock.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LockGuard {
    held: Held,
}

impl LockGuard {
    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.held.queue().name()
    }

    /// The session that holds it.
    pub fn session(&self) -> &Session {
        self.held.session()
    }

    /// The fencing token. Fails with [`Error::Session`] unless the lock is certainly held at this moment.
    pub fn token(&self) -> Result<u64, Error> {
        self.held.token()
    }

    /// For writes that are applied only while the lock is held, which the cluster decides when it applies them.
    pub fn guard(&self) -> Guard {
        Guard::lock(self.name(), self.held.unchecked_token())
    }

    /// Waits until it is lost with its session.
    pub async fn lost(&self) -> Loss {
        self.held.lost().await
    }

    /// Gives it up; the next in the queue has it at once. Fails with `not_lock_holder` if it was lost before.
    pub async fn release(self) -> Result<(), Error> {
        self.held.give_up().await
    }
}

impl From<&LockGuard> for Guard {
    fn from(guard: &LockGuard) -> Self {
        guard.guard()
    }
}

/// A lock by its name, from [`Client::lock`]: looked at, checked, and released for others.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// let books = client.lock("books");
/// let now = books.get().await?;
/// println!("{} hold it, {} wait", now.holder_count, now.waiter_count);
/// // Somebody who hangs loses it, by hand. What he still writes under it is refused.
/// if let Some(holder) = now.holders.first() {
///     books.release(holder.token).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct NamedLock<'a> {
    client: &'a Client,
    queue: Queue,
}

impl Client {
    /// The lock of this name, whoever holds it.
    pub fn lock(&self, name: impl Into<String>) -> NamedLock<'_> {
        NamedLock { client: self, queue: Queue::Lock(name.into()) }
    }

    /// All locks that somebody holds or waits for, by name.
    pub fn locks(&self) -> Pages<'_, LockList> {
        Pages::of(self, "/v1/locks")
    }
}

impl<'a> NamedLock<'a> {
    /// Who holds it, and who waits for it.
    pub async fn get(&self) -> Result<LockAnswer, Error> {
        self.client.read(self.queue.path("")?).await
    }

    /// Whether this token holds it: fails with `guard_failed` if not.
    pub async fn check(&self, token: u64) -> Result<CheckAnswer, Error> {
        let mut target = self.queue.path("/check")?;
        push_query(&mut target, "token", token);
        self.client.read(target).await
    }

    /// Takes it from the holder of this token. The holder is not asked and not told: its guarded writes are refused from now
    /// on. Fails with `not_lock_holder`.
    pub fn release(&self, token: u64) -> Pending<'a, ReleaseAnswer> {
        self.queue.release(self.client, token)
    }

    /// Gives up whatever this session has there, a place in the queue too.
    pub fn release_session(&self, session: &str) -> Pending<'a, ReleaseAnswer> {
        self.queue.leave(self.client, session)
    }
}
