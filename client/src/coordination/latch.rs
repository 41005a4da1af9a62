//! Latches: counted down to 0, where they open for good. They hang on no session.

use std::time::{Duration, Instant};

use http::Method;

use crate::api::{CountDownRequest, LatchAnswer, LatchRemoved, LatchRequest};
use crate::call::error::Error;
use crate::call::operation::milliseconds;
use crate::call::request::{push_query, segment_path};
use crate::client::Client;
use crate::client::pending::Pending;
use crate::client::retry::{WAIT_ATTEMPT, WAIT_HELD_MAX, WAIT_PAUSE};

/// A latch by its name, from [`Client::latch`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use std::time::Duration;
///
/// // Three parts are copied, each by a process of its own.
/// let latch = client.latch("copied");
/// latch.create(3).await?;
/// latch.count_down(1).await?;
/// // Whoever needs all three waits, in whatever process.
/// let copied = latch.wait(Duration::from_secs(60)).await?;
/// println!("{}", if copied.open { "all are there" } else { "not in time" });
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Latch<'a> {
    client: &'a Client,
    name: String,
}

impl Client {
    /// The latch of this name.
    pub fn latch(&self, name: impl Into<String>) -> Latch<'_> {
        Latch { client: self, name: name.into() }
    }
}

impl<'a> Latch<'a> {
    /// Makes it: it opens after so many counts. The same again changes nothing; another count fails with `different_settings`.
    pub fn create(&self, count: u64) -> Pending<'a, LatchAnswer> {
        let request = LatchRequest { count: Some(count), request_id: None };
        Pending::with(self.client, Method::PUT, self.path(""), &request)
    }

    /// Counts it down; more than is left is as good as what is left. Fails with `not_found`.
    pub fn count_down(&self, by: u64) -> Pending<'a, LatchAnswer> {
        let request = CountDownRequest { by: Some(by), request_id: None };
        Pending::with(self.client, Method::POST, self.path("/count_down"), &request)
    }

    /// Removes it. Fails with `not_found`.
    pub fn remove(&self) -> Pending<'a, LatchRemoved> {
        Pending::bare(self.client, Method::DELETE, self.path(""))
    }

    /// What it is now. Fails with `not_found`.
    pub async fn get(&self) -> Result<LatchAnswer, Error> {
        self.look(Duration::ZERO).await
    }

    /// Waits until it is open, at most for `wait`; tells what it is then. Fails with `not_found`.
    pub async fn wait(&self, wait: Duration) -> Result<LatchAnswer, Error> {
        let started = Instant::now();
        loop {
            let left = wait.saturating_sub(started.elapsed());
            match self.look(left.min(WAIT_HELD_MAX)).await {
                Ok(answer) if answer.open || left.is_zero() => return Ok(answer),
                Err(Error::Unavailable(_)) if !left.is_zero() => tokio::time::sleep(WAIT_PAUSE).await,
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn look(&self, wait: Duration) -> Result<LatchAnswer, Error> {
        let mut target = self.path("")?;
        if !wait.is_zero() {
            push_query(&mut target, "wait_ms", milliseconds(wait));
        }
        let mut call = self.client.read_call(target)?;
        (call.hold, call.attempt) = (wait, Some(WAIT_ATTEMPT));
        self.client.fetch(call).await
    }

    fn path(&self, verb: &str) -> Result<String, Error> {
        segment_path("/v1/latches/", &self.name, verb, "the name of a latch")
    }
}
