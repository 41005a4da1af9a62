//! Optimistic update: read, decide, write on the token that was read, again while someone else was faster.
//!
//! Owns the loop and its bound. A refused try brings the entry as it is along, so the next try costs one round trip.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::{EntryView, ErrorCode, Problem, WriteAnswer};
use crate::client::Client;
use crate::error::Error;
use crate::kv::Value;

/// Tries of one update. Of `n` clients that fight for one entry each wins a round with chance `1/n`: with 16 of them one in
/// ten million updates runs out of tries.
pub const TRIES_MAX: u32 = 256;
/// So many further tries follow at once: mostly there are few rivals, and what a refusal showed is never as fresh again.
const AT_ONCE: u32 = 8;
/// Pauses between later tries are random up to this, so that the crowd spreads.
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
    /// depend on its argument only. The entry never expires afterwards.
    pub async fn update<T, F>(&self, key: &str, change: F) -> Result<Updated<T>, Error>
    where
        T: Serialize + DeserializeOwned,
        F: FnMut(Option<T>) -> Option<T>,
    {
        self.update_within(key, TRIES_MAX, change).await
    }

    /// The same with another bound on the tries.
    pub async fn update_within<T, F>(&self, key: &str, tries_max: u32, mut change: F) -> Result<Updated<T>, Error>
    where
        T: Serialize + DeserializeOwned,
        F: FnMut(Option<T>) -> Option<T>,
    {
        let mut current = self.get(key).await?;
        for tries in 1.. {
            let document = current.as_ref().map(EntryView::json).transpose()?;
            let Some(value) = change(document) else { return Ok(Updated::Unchanged) };
            let write = self.put(key, Value::json(&value)?);
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

/// Whether the entry changed between read and write.
fn lost_the_race(problem: &Problem) -> bool {
    matches!(problem.code, ErrorCode::CasMismatch | ErrorCode::AlreadyExists | ErrorCode::NotFound)
        && problem.errors.is_empty()
}

/// How long to wait after so many tries; `None` for not at all.
fn pause(tries: u32, roll: f64) -> Option<Duration> {
    let later = tries.checked_sub(AT_ONCE + 1)?;
    Some(Duration::from_millis(2).saturating_mul(1 << later.min(10)).min(PAUSE_MAX).mul_f64(roll))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tries_follow_at_once_and_later_pauses_stay_bounded() {
        assert_eq!(pause(1, 0.9), None);
        assert_eq!(pause(AT_ONCE, 0.9), None);
        assert!(pause(AT_ONCE + 1, 1.0).is_some_and(|pause| pause <= Duration::from_millis(4)));
        assert_eq!(pause(u32::MAX, 1.0), Some(PAUSE_MAX));
    }
}
