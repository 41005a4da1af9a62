//! The name of one write, and for how long one may be repeated under it.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::HeaderValue;

use crate::call::moment::Moment;

/// Longest time in which a write is repeated under one request id. Nodes remember an id for at least 15 minutes, and would apply it a
/// second time after that; what is still on its way, and clocks that differ, have the rest.
pub(crate) const WRITE_PATIENCE_MAX: Duration = Duration::from_secs(5 * 60);

/// Names one write over all its attempts.
///
/// # Examples
///
/// ```
/// use quorate_client::RequestId;
///
/// // One that others can find again: made of what the write is about.
/// let id: RequestId = "invoice-2026-0042".parse()?;
/// assert_eq!(id.as_str(), "invoice-2026-0042");
/// // Or one that nobody else has.
/// assert_ne!(RequestId::random(), RequestId::random());
/// assert!("not one\n".parse::<RequestId>().is_err());
/// # Ok::<(), quorate_client::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// Unix milliseconds (48 bits) and 72 random bits in 20 characters. The time in front puts the rows of one moment next
    /// to each other in the nodes' request tables, which makes writing them cheaper; nothing depends on it being right.
    pub fn random() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut bytes: [u8; 15] = rand::random();
        bytes[..6].copy_from_slice(&since_epoch.as_millis().to_be_bytes()[10..]);
        let text = URL_SAFE_NO_PAD.encode(bytes);
        Self(HeaderValue::from_maybe_shared(Bytes::from(text)).expect("base64url is a header value"))
    }

    /// Of a header that was checked.
    pub(crate) fn of_header(value: HeaderValue) -> Self {
        Self(value)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().expect("an id is made of printable ASCII only")
    }

    /// As the value of `Idempotency-Key`.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A request id under which the same is asked in one call after the other.
#[derive(Debug, Clone)]
pub(crate) struct LastingId {
    id: RequestId,
    since: Moment,
}

impl LastingId {
    /// A new one.
    pub fn new() -> Self {
        Self { id: RequestId::random(), since: Moment::now() }
    }

    /// Whether nodes certainly still know what they decided under it.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh_at(Moment::now())
    }

    /// The id for the next call: another one, once nodes may have forgotten the last.
    pub fn current(&mut self) -> RequestId {
        if !self.is_fresh() {
            *self = Self::new();
        }
        self.id.clone()
    }

    fn is_fresh_at(&self, now: Moment) -> bool {
        now.since(self.since) < WRITE_PATIENCE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_lasts_until_either_clock_says_that_nodes_may_have_forgotten_it() {
        let mut lasting = LastingId::new();
        let (first, since) = (lasting.current(), lasting.since);
        assert_eq!(lasting.current(), first);
        assert!(lasting.is_fresh_at(since + (WRITE_PATIENCE_MAX - Duration::from_millis(1))));
        assert!(!lasting.is_fresh_at(since + WRITE_PATIENCE_MAX));
        assert!(
            !lasting.is_fresh_at(Moment { wall: since.wall + WRITE_PATIENCE_MAX, ..since }),
            "the machine was suspended"
        );
        lasting.since.wall -= WRITE_PATIENCE_MAX;
        assert_ne!(lasting.current(), first);
    }
}
