//! Answers that are made and not taken by their peers yet: how much memory they hold.
//!
//! Owns the bound on all long answers together. A page is made in milliseconds and may take a slow reader half a minute to take, so
//! it is not what is at work that bounds them. Never delays an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use bytes::Bytes;
use hyper::body::Body as _;

use crate::gateway::failure::Failure;
use crate::limits;

/// The memory of long answers.
#[derive(Debug)]
pub struct AnswerMemory {
    bytes_max: usize,
    held: Arc<AtomicUsize>,
}

/// A long answer. Counted as long as anything of it is somewhere on its way.
struct Long {
    bytes: Bytes,
    held: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Long {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Long {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl AnswerMemory {
    /// All of it free.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, held: Arc::default() }
    }

    /// Bytes of long answers at the moment.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Refuses to make more of them while there are too many.
    pub fn check(&self) -> Result<(), Failure> {
        if self.held() >= self.bytes_max {
            return Err(Failure::too_many("answers that their readers have not taken hold all the memory they may"));
        }
        Ok(())
    }

    /// Refuses to give this one away, if it is long and there are too many. Only of what was read: a write has taken effect.
    pub fn check_answer(&self, body: &Body) -> Result<(), Failure> {
        if body.size_hint().lower() >= limits::LONG_ANSWER_BYTES { self.check() } else { Ok(()) }
    }

    /// Counts a body if it is long.
    pub fn count(&self, body: Body) -> Body {
        // What is still to come has no length yet.
        if body.size_hint().exact().is_none_or(|bytes| bytes < limits::LONG_ANSWER_BYTES) {
            return body;
        }
        // One frame, and it is there.
        let frame = futures::FutureExt::now_or_never(http_body_util::BodyExt::frame(&mut { body }));
        let Some(Some(Ok(frame))) = frame else { return Body::default() };
        let bytes = frame.into_data().unwrap_or_default();
        self.held.fetch_add(bytes.len(), Ordering::Relaxed);
        Body::from(Bytes::from_owner(Long { bytes, held: Arc::clone(&self.held) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(body: Body) -> Bytes {
        let collected = futures::FutureExt::now_or_never(http_body_util::BodyExt::collect(body));
        collected.expect("it is there").expect("it is whole").to_bytes()
    }

    #[test]
    fn a_long_answer_counts_until_its_last_byte_is_gone() {
        let room = AnswerMemory::new(100_000);
        let long = vec![7u8; 150_000];
        let body = room.count(Body::from(Bytes::from(long.clone())));
        assert_eq!(room.held(), 150_000);
        assert!(room.check().is_err());
        let mut bytes = bytes_of(body);
        assert_eq!(bytes, long);
        let last = bytes.split_off(149_999);
        drop(bytes);
        assert_eq!(room.held(), 150_000, "a byte is on its way");
        drop(last);
        assert_eq!(room.held(), 0);
        assert!(room.check().is_ok());
    }

    #[test]
    fn a_short_one_does_not_count() {
        let room = AnswerMemory::new(1);
        let body = room.count(Body::from(Bytes::from_static(b"short")));
        assert_eq!((room.held(), &bytes_of(body)[..]), (0, &b"short"[..]));
    }
}
