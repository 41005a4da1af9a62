//! Sequences: counters that give each number once and leave none out.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;

use crate::api::{SequenceAnswer, SequenceNext, SequenceRequest};
use crate::client::Client;
use crate::error::Error;
use crate::request::{Call, Intent, RequestId, name_path};

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
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let taken = client.sequence("tickets").next(10).await?;
    /// println!("from {} to {}", taken.first, taken.last);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sequence(&self, name: impl Into<String>) -> Sequence<'_> {
        Sequence { client: self, name: name.into() }
    }
}

impl<'a> Sequence<'a> {
    /// The last number given, 0 before the first. Takes none.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// println!("{} tickets so far", client.sequence("tickets").get().await?.value);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get(&self) -> Result<SequenceAnswer, Error> {
        let call = Call::new(Method::GET, self.path()?, Intent::Read, self.client.read_preference())?;
        self.client.fetch(call).await
    }

    /// Takes the next `count` numbers, which follow one another.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// let number = client.sequence("invoices").next(1).await?.first;
    /// client.insert_json(format!("invoices/{number}"), "to ann").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn next(&self, count: u64) -> TakeNext<'a> {
        TakeNext { sequence: self.clone(), count, request_id: RequestId::random(), timeout: None }
    }

    fn path(&self) -> Result<String, Error> {
        name_path("/v1/sequences/", &self.name, "the name of a sequence")
    }
}

/// Numbers to be taken, when awaited. Carries a request id from the beginning: a retry gives the same numbers.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::RequestId;
///
/// let id: RequestId = "invoice-of-order-o42".parse()?;
/// // However often this is run: one order, one number.
/// let number = client.sequence("invoices").next(1).request_id(id).await?.first;
/// # Ok(())
/// # }
/// ```
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
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::RequestId;
    ///
    /// let id = RequestId::random();
    /// let first = client.sequence("tickets").next(1).request_id(id.clone()).await?;
    /// assert_eq!(client.sequence("tickets").next(1).request_id(id).await?.first, first.first);
    /// # Ok(())
    /// # }
    /// ```
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// Deadline instead of the client's own.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// let taken = client.sequence("tickets").next(1).timeout(Duration::from_secs(1)).await?;
    /// # Ok(())
    /// # }
    /// ```
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
        Box::pin(async move {
            let client = self.sequence.client;
            client.fetch(self.call()?).await
        })
    }
}
