//! Sequences: counters that give each number once and leave none out.

use http::Method;

use crate::api::{SequenceAnswer, SequenceNext, SequenceRequest};
use crate::call::error::Error;
use crate::call::request::name_path;
use crate::client::Client;
use crate::client::pending::Pending;

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

    /// Takes the next `count` numbers, which follow one another. A retry gives the same numbers.
    pub fn next(&self, count: u64) -> Pending<'a, SequenceNext> {
        let request = SequenceRequest { count: Some(count), request_id: None };
        Pending::with(self.client, Method::POST, self.path(), &request)
    }

    fn path(&self) -> Result<String, Error> {
        name_path("/v1/sequences/", &self.name, "the name of a sequence")
    }
}
