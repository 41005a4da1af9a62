//! Optimistic update: read, decide, write on the token that was read, again while someone else was faster.
//!
//! Owns the loop and its bound. A refused try brings the entry as it is along, so the next try costs one round trip.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{EntryView, ErrorCode, Guard, Name, Problem, WriteAnswer};
use crate::call::error::Error;
use crate::call::value::Value;
use crate::client::Client;
use crate::entries::kv::Write;

/// Tries of one update. Rivals that are nearer to the leader win more often: of eight clients on one machine, three of them by
/// way of followers, the unluckiest update took 242.
pub const TRIES_MAX: u32 = 1_024;
/// So many further tries follow at once: mostly there are few rivals, and what a refusal showed is never as fresh again.
const AT_ONCE: u32 = 8;
/// Then there are pauses, so that the crowd spreads; but who lost so often tries at once again, until it wins. Its rivals are
/// mostly fresher, and may be nearer to the leader: who pauses and reads while they do not would lose to them for ever.
const PATIENT: u32 = 48;
/// Pauses are random up to this.
const PAUSE_MAX: Duration = Duration::from_millis(16);

/// What an update did.
#[derive(Debug, Clone, PartialEq)]
pub enum Updated<T> {
    /// It wrote.
    #[non_exhaustive]
    Written {
        /// What it wrote.
        value: T,
        /// The answer to the write.
        answer: Box<WriteAnswer>,
        /// How many tries that took.
        tries: u32,
    },
    /// The function returned `None`: the entry is as it was.
    Unchanged,
}

impl<T> Updated<T> {
    /// What was written.
    pub fn written(self) -> Option<T> {
        match self {
            Self::Written { value, .. } => Some(value),
            Self::Unchanged => None,
        }
    }
}

/// An update to be awaited, from [`Client::update`].
#[must_use = "does nothing until awaited"]
pub struct Update<'a, T, F> {
    terms: Terms<'a>,
    change: F,
    content: PhantomData<fn(T) -> T>,
}

/// What an update is but for the change itself.
struct Terms<'a> {
    client: &'a Client,
    key: Name,
    tries_max: u32,
    ttl: Option<Duration>,
    session: Option<String>,
    guard: Option<Guard>,
    timeout: Option<Duration>,
}

impl<T, F> fmt::Debug for Update<'_, T, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Update(`{}` in {} tries)", self.terms.key, self.terms.tries_max)
    }
}

impl Client {
    /// Replaces the entry's value by what `change` makes of it. `change` gets `None` where there is no entry, which is then
    /// created; it returns `None` to leave things as they are. It may be called up to [`TRIES_MAX`] times and should
    /// depend on its argument only. The entry keeps its session and the time it has left to live; one that is
    /// created has neither, but for what its collection gives.
    ///
    /// The whole value is written back from `T`. Fields that `T` does not have are lost, such as those that a newer version of a program
    /// added, unless it keeps them (`#[serde(flatten)]` into a map), and a [`serde_json::Value`] rounds whole numbers beyond 64 bits and
    /// fractions of more than 17 digits. [`Client::patch`] keeps all that it does not name, digit by digit.
    ///
    /// Fails with [`Error::Locked`] while somebody else has the entry locked, and with [`Error::Contended`] once all tries are lost.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Stock {
    ///     left: u64,
    /// }
    /// let sold = client
    ///     .update("stock/apples", |stock: Option<Stock>| {
    ///         let left = stock?.left.checked_sub(1)?;
    ///         Some(Stock { left })
    ///     })
    ///     .tries(20)
    ///     .await?;
    /// println!("{} left", sold.written().map_or(0, |stock| stock.left));
    /// # Ok(())
    /// # }
    /// ```
    pub fn update<'a, T, F>(&'a self, key: impl Into<Name>, change: F) -> Update<'a, T, F>
    where
        T: Serialize + DeserializeOwned,
        F: FnMut(Option<T>) -> Option<T>,
    {
        let (tries_max, ttl, session, guard, timeout) = (TRIES_MAX, None, None, None, None);
        let terms = Terms { client: self, key: key.into(), tries_max, ttl, session, guard, timeout };
        Update { terms, change, content: PhantomData }
    }
}

impl<T, F> Update<'_, T, F> {
    /// Most tries instead of [`TRIES_MAX`]; at least one.
    pub fn tries(mut self, tries: u32) -> Self {
        self.terms.tries_max = tries.max(1);
        self
    }

    /// Time to live from the write on instead of what the entry has left, in milliseconds rounded up; zero fails, see [`crate::Op::ttl`].
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.terms.ttl = Some(ttl);
        self
    }

    /// The session that the entry goes with from now on instead of the one that it has. A [`crate::Session`] or its id.
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.terms.session = Some(session.into());
        self
    }

    /// Only while this token holds its lock or leads its election; fails with `guard_failed`.
    pub fn guarded_by(mut self, guard: impl Into<Guard>) -> Self {
        self.terms.guard = Some(guard.into());
        self
    }

    /// Deadline of each read and each write instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.terms.timeout = Some(timeout);
        self
    }
}

impl<'a> Terms<'a> {
    async fn read(&self) -> Result<Option<EntryView>, Error> {
        let get = self.client.get(&self.key);
        match self.timeout {
            Some(timeout) => get.timeout(timeout).await,
            None => get.await,
        }
    }

    /// The entry from the refusal, or read anew where that does not carry it.
    async fn as_it_is(&self, problem: Problem) -> Result<Option<EntryView>, Error> {
        match problem.current {
            Some(entry) if entry.value.is_some() => Ok(Some(entry)),
            _ => self.read().await,
        }
    }

    /// The write of this value in place of what was read.
    fn write(&self, current: Option<&EntryView>, value: Value) -> Result<Write<'a>, Error> {
        let mut write = self.client.put(&self.key, value);
        if let Some(entry) = current {
            let Some(cas) = entry.cas else { return Err(self.locked(entry.lock_ms)) };
            // The time that was left when it was read would be given anew by each update.
            write = write.cas(cas).keep_ttl();
            write = entry.session.iter().fold(write, Write::session);
        } else {
            write = write.if_absent();
        }
        write = self.ttl.into_iter().fold(write, Write::ttl);
        write = self.session.iter().fold(write, Write::session);
        write = self.guard.iter().cloned().fold(write, Write::guarded_by);
        Ok(self.timeout.into_iter().fold(write, Write::timeout))
    }

    fn locked(&self, lock_ms: Option<u64>) -> Error {
        Error::Locked { key: self.key.clone(), lock_left: lock_ms.map(Duration::from_millis) }
    }
}

impl<T, F> Update<'_, T, F>
where
    T: Serialize + DeserializeOwned,
    F: FnMut(Option<T>) -> Option<T>,
{
    async fn run(self) -> Result<Updated<T>, Error> {
        let Self { terms, mut change, .. } = self;
        let mut current = terms.read().await?;
        let mut tries = 1;
        loop {
            let document = current.as_ref().map(EntryView::json).transpose()?;
            let Some(value) = change(document) else { return Ok(Updated::Unchanged) };
            let last = match terms.write(current.as_ref(), Value::json(&value)?)?.await {
                Ok(answer) => return Ok(Updated::Written { value, answer: answer.into(), tries }),
                Err(Error::Rejected(problem)) if lost_the_race(&problem) => problem,
                Err(Error::Rejected(problem)) if problem.code == ErrorCode::Locked => {
                    return Err(terms.locked(problem.current.and_then(|entry| entry.lock_ms)));
                }
                Err(error) => return Err(error),
            };
            if tries >= terms.tries_max {
                return Err(Error::Contended { key: terms.key, tries, last });
            }
            current = match pause(tries, rand::random()) {
                None => terms.as_it_is(*last).await?,
                Some(pause) => {
                    tokio::time::sleep(pause).await;
                    // What the refusal showed has aged: a try on it would lose to everyone who has just read.
                    terms.read().await?
                }
            };
            tries += 1;
        }
    }
}

impl<'a, T, F> IntoFuture for Update<'a, T, F>
where
    T: Serialize + DeserializeOwned + Send + 'a,
    F: FnMut(Option<T>) -> Option<T> + Send + 'a,
{
    type Output = Result<Updated<T>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

/// Whether the entry changed between read and write.
fn lost_the_race(problem: &Problem) -> bool {
    matches!(problem.code, ErrorCode::CasMismatch | ErrorCode::AlreadyExists | ErrorCode::NotFound)
        && problem.errors.is_empty()
}

/// How long to wait after so many tries; `None` for not at all.
fn pause(tries: u32, roll: f64) -> Option<Duration> {
    let later = tries.checked_sub(AT_ONCE + 1).filter(|_| tries <= PATIENT)?;
    Some(Duration::from_millis(2).saturating_mul(1 << later.min(10)).min(PAUSE_MAX).mul_f64(roll))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_follow_at_once_then_with_pauses_and_then_at_once_again() {
        for tries in [1, AT_ONCE, PATIENT + 1, TRIES_MAX, u32::MAX] {
            assert_eq!(pause(tries, 0.9), None, "after {tries} tries");
        }
        assert_eq!(pause(AT_ONCE + 1, 1.0), Some(Duration::from_millis(2)));
        assert_eq!(pause(AT_ONCE + 2, 1.0), Some(Duration::from_millis(4)));
        assert_eq!(pause(PATIENT, 1.0), Some(PAUSE_MAX));
    }
}
