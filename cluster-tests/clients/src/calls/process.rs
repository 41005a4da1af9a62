//! The standard error of this process and the wall clock of its clients, as files of the suite change them. Owns their return to what they were.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quorate_client::testing::set_wall_ahead;
use serde::Deserialize;
use serde_json::json;

use super::Asked;
use crate::failure::{Failure, Outcome};

/// Standard error as it was, once it is lost.
static STDERR: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// From now on standard error is a pipe that nobody reads.
pub fn close_stderr() -> Outcome {
    let lose = || -> io::Result<()> {
        let mut kept = STDERR.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            *kept = Some(io::stderr().as_fd().try_clone_to_owned()?);
        }
        let (_, writes) = io::pipe()?;
        Ok(rustix::stdio::dup2_stderr(writes)?)
    };
    lose().map_err(|error| Failure::Suite(format!("standard error cannot be lost: {error}")))?;
    Ok(json!({}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WallAhead {
    ms: u64,
}

/// The wall clock is so far ahead from now on.
pub fn wall_ahead(asked: &Asked<'_>) -> Outcome {
    let with: WallAhead = asked.arguments()?;
    set_wall_ahead(Duration::from_millis(with.ms));
    Ok(json!({}))
}

/// Everything as it was.
pub fn restore() -> io::Result<()> {
    set_wall_ahead(Duration::ZERO);
    match STDERR.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(kept) => Ok(rustix::stdio::dup2_stderr(kept)?),
        None => Ok(()),
    }
}
