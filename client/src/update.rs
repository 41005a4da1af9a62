//! Optimistic update: read, decide, write on the token that was read, again while someone else was faster.
//!
//! Owns the loop and its bound. A refused try brings the entry as it is along, so the next try costs one round trip.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{EntryView, ErrorCode, Problem, WriteAnswer};
use crate::client::Client;
use crate::error::Error;
use crate::kv::Write;
use crate::value::Value;

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

impl Client {
    /// Replaces the entry's value by what `change` makes of it. `change` gets `None` where there is no entry, which is then
    /// created; it returns `None` to leave things as they are. It may be called up to [`TRIES_MAX`] times and should
    /// depend on its argument only. The entry keeps its session and the time it has left to live; one that is
    /// created has neither, but for what its collection gives.
    pub async fn update<T, F>(&self, key: &str, change: F) -> Result<Updated<T>, Error>
    where
        T: Serialize + DeserializeOwned,
        F: FnMut(Option<T>) -> Option<T>,
    {
        self.update_within(key, TRIES_MAX, change).await
    }

    /// Updates with another bound on the tries.
    pub async fn update_within<T, F>(&self, key: &str, tries_max: u32, mut change: F) -> Result<Updated<T>, Error>
    where
        T: Serialize + DeserializeOwned,
        F: FnMut(Option<T>) -> Option<T>,
    {
        let mut current = self.get(key).await?;
        for tries in 1.. {
            let document = current.as_ref().map(EntryView::json).transpose()?;
            let Some(value) = change(document) else { return Ok(Updated::Unchanged) };
            let write = kept(current.as_ref(), self.put(key, Value::json(&value)?));
            let write = match current.as_ref().and_then(|entry| entry.cas.as_ref()) {
                Some(cas) => write.cas(cas),
                None if current.is_none() => write.if_absent(),
                None => return Err(Error::Invalid(format!("`{key}` is locked by another client"))),
            };
            let last = match write.await {
                Ok(answer) => return Ok(Updated::Written { value, answer: answer.into(), tries }),
                Err(Error::Rejected(problem)) if lost_the_race(&problem) => problem,
                Err(error) => return Err(error),
            };
            if tries >= tries_max {
                return Err(Error::Contended { key: key.into(), tries, last });
            }
            current = match pause(tries, rand::random()) {
                None => self.as_it_is(key, *last).await?,
                Some(pause) => {
                    tokio::time::sleep(pause).await;
                    // What the refusal showed has aged: a try on it would lose to everyone who has just read.
                    self.get(key).await?
                }
            };
        }
        unreachable!("the loop ends by its bound of {tries_max} tries")
    }

    /// The entry from the refusal, or read anew where that does not carry it.
    async fn as_it_is(&self, key: &str, problem: Problem) -> Result<Option<EntryView>, Error> {
        match problem.current {
            Some(entry) if entry.value.is_some() => Ok(Some(entry)),
            _ => self.get(key).await,
        }
    }
}

/// The write that leaves the entry the session and the time to live that it has.
fn kept<'a>(current: Option<&EntryView>, write: Write<'a>) -> Write<'a> {
    let Some(entry) = current else { return write };
    // Without a time of its own it would get that of its collection.
    let write = write.ttl(entry.ttl_ms.map_or(Duration::ZERO, |left| Duration::from_millis(left.max(1))));
    match &entry.session {
        Some(session) => write.session(session),
        None => write,
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
