//! Sequences: counters that give each number once and leave none out.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::BoxFuture;

use crate::api::{SequenceAnswer, SequenceNext, SequenceRequest};
use crate::call::error::Error;
use crate::call::request::{Call, Intent, RequestId, name_path};
use crate::client::Client;

/// A sequence by its name, from [`Client::sequence`]. It is there once a number was taken from it.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// let tickets = client.sequence("tickets");
/// // A hundred at once, to be given out without asking.
/// let taken = tickets.next(100).await?;
/// assert_eq!(taken.last - taken.first, 99);
/// assert!(tickets.get().await?.value >= taken.last);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Sequence<'a> {
    client: &'a Client,
    name: String,
}

impl Client {
    /// The sequence of this name.
    pub fn sequence(&self, name: impl Into<String>) -> Sequence<'_> {
        Sequence { client: self, name: name.into() }
    }
}

impl<'a> Sequence<'a> {
    /// The last number given, 0 before the first. Takes none.
    pub async fn get(&self) -> Result<SequenceAnswer, Error> {
        self.client.read(self.path()?).await
    }

    /// Takes the next `count` numbers, which follow one another.
    pub fn next(&self, count: u64) -> TakeNext<'a> {
        TakeNext { sequence: self.clone(), count, request_id: RequestId::random(), timeout: None }
    }

    fn path(&self) -> Result<String, Error> {
        name_path("/v1/sequences/", &self.name, "the name of a sequence")
    }
}

/// Numbers to be taken, when awaited. Carries a request id from the beginning: a retry gives the same numbers.
#[must_use = "does nothing until awaited"]
#[derive(Debug, Clone)]
pub struct TakeNext<'a> {
    sequence: Sequence<'a>,
    count: u64,
    request_id: RequestId,
    timeout: Option<Duration>,
}

impl TakeNext<'_> {
    /// An id of one's own instead of a random one: to repeat it where its outcome stayed unknown.
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// Deadline instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn call(self) -> Result<Call, Error> {
        let request = SequenceRequest { count: Some(self.count), request_id: None };
        let mut call = Call::post_to(self.sequence.path()?, &request, Intent::Write(self.request_id))?;
        call.timeout = self.timeout;
        Ok(call)
    }
}

impl<'a> IntoFuture for TakeNext<'a> {
    type Output = Result<SequenceNext, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let client = self.sequence.client;
        client.ask(self.call())
    }
}
