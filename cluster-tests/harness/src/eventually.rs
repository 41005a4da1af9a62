//! Waiting for a condition with a deadline.
//!
//! Owns the only pause in the harness: the one between two looks at a condition. Never waits for time alone.

use std::time::Duration;

use tokio::time::Instant;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks until `probe` gives a value, and returns it. Panics after `within` with `what` was awaited and the last reason
/// that `probe` gave for not being there yet.
pub async fn eventually<T>(what: &str, within: Duration, probe: impl AsyncFnMut() -> Result<T, String>) -> T {
    match sooner_than(within, probe).await {
        Ok(value) => value,
        Err(reason) => panic!("{what}: not within {within:?}; at last: {reason}"),
    }
}

/// Looks until `probe` gives a value; after `within` returns the last reason why it was not there. A look that takes
/// longer than the deadline is cut.
pub async fn sooner_than<T>(within: Duration, mut probe: impl AsyncFnMut() -> Result<T, String>) -> Result<T, String> {
    let deadline = Instant::now() + within;
    let mut reason = String::from("the first look never ended");
    loop {
        match tokio::time::timeout_at(deadline, probe()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(why)) => reason = why,
            Err(_) => return Err(reason),
        }
        if Instant::now() + PAUSE >= deadline {
            return Err(reason);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
