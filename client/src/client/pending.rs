//! A change whose path and body say all, to be awaited.
//!
//! Owns its request id and deadline. What is asked for is said by whoever makes it.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::request::{Call, Intent, RequestId, json_body};
use crate::client::Client;

/// A change to be awaited, and then answered by an `A`. Carries a request id from the beginning, so its retries are safe.
#[must_use = "does nothing until awaited"]
#[derive(Debug)]
pub struct Pending<'a, A> {
    client: &'a Client,
    call: Result<Call, Error>,
    answer: PhantomData<fn() -> A>,
}

impl<'a, A> Pending<'a, A> {
    /// With a JSON body.
    pub(crate) fn with(client: &'a Client, method: Method, path: Result<String, Error>, body: &impl Serialize) -> Self {
        let mut pending = Self::bare(client, method, path);
        pending.call = pending.call.and_then(|call| Ok(call.json(json_body(body)?)));
        pending
    }

    /// Without a body.
    pub(crate) fn bare(client: &'a Client, method: Method, path: Result<String, Error>) -> Self {
        let intent = Intent::Write(RequestId::random());
        let call = path.and_then(|path| Call::new(method, path, intent, Preference::Leader));
        Self { client, call, answer: PhantomData }
    }

    /// An id of one's own instead of a random one: to repeat a change whose outcome stayed unknown.
    pub fn request_id(mut self, id: RequestId) -> Self {
        if let Ok(call) = &mut self.call {
            call.intent = Intent::Write(id);
        }
        self
    }

    /// Deadline instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        if let Ok(call) = &mut self.call {
            call.timeout = Some(timeout);
        }
        self
    }

    /// The call, for those who send it themselves.
    pub(crate) fn into_call(self) -> Result<Call, Error> {
        self.call
    }
}

impl<'a, A: DeserializeOwned + Send + 'a> IntoFuture for Pending<'a, A> {
    type Output = Result<A, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.client.ask(self.call)
    }
}
