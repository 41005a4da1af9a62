//! A stream of server-sent events.
//!
//! Owns the way from pieces to events. The connection is [`super::body`]'s.

use std::time::Duration;

use super::body::OpenBody;
use crate::call::error::FailureKind;
use crate::transport::messages::{Message, Messages};

/// An open stream.
pub(crate) struct EventStream {
    /// The revision at which it begins, as its head says.
    pub revision: Option<u64>,
    body: OpenBody,
    messages: Messages,
}

impl EventStream {
    /// Of an answer that is one.
    pub fn of(body: OpenBody) -> Self {
        Self { revision: body.revision, body, messages: Messages::default() }
    }

    /// The next event; how the stream ended where there is none. May be dropped and called again. `patience` is for how long
    /// nothing at all may come.
    pub async fn next(&mut self, patience: Duration) -> Result<Message, FailureKind> {
        loop {
            if let Some(message) = self.messages.next().map_err(|bad| FailureKind::Strange(bad.to_string()))? {
                return Ok(message);
            }
            match self.body.next(patience).await? {
                Some(piece) => self.messages.feed(&piece),
                None => return Err(FailureKind::Broken("the stream ended".into())),
            }
        }
    }
}
