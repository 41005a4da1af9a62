//! How full the table of kept outcomes is, and the record of refusals, for people.
//!
//! Owns when a warning is due, and how often. Never refuses anything: a command without room is refused where commands are applied.

use std::time::{Duration, Instant};

use quorate_machine::limits::{REQUEST_TABLE_BYTES_MAX, REQUEST_TABLE_SHARED_FROM};
use quorate_machine::query::StateFault;
use quorate_store::state::StateReader;

/// How often the leader looks.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Time between two lines of the log: the outcomes that fill the table go within half an hour.
const SAY_EVERY: Duration = Duration::from_secs(600);

/// The warning for an operator once shares hold, with the principal that has most: from then on somebody may be refused.
pub fn warning(state: &StateReader) -> Result<Option<String>, StateFault> {
    let held = state.kept_for_a_while()?.requests;
    if held < REQUEST_TABLE_SHARED_FROM {
        return Ok(None);
    }
    Ok(Some(told(held, state.largest_keeper()?)))
}

fn told(held: u64, largest: Option<(String, u64)>) -> String {
    let most = largest.map_or(String::new(), |(name, bytes)| format!("; {name:?} has most of them, {bytes}"));
    format!(
        "{held} of the {REQUEST_TABLE_BYTES_MAX} bytes for outcomes kept for retries are taken{most}; at the bound new requests are refused"
    )
}

/// The warning for an operator once refusals are left out of the audit trail, with the principal that has most of them there.
pub fn refusals_warning(state: &StateReader) -> Result<Option<String>, StateFault> {
    let left_out = state.kept_for_a_while()?.dropped;
    if left_out == 0 {
        return Ok(None);
    }
    Ok(Some(left_out_told(left_out, state.most_refused()?)))
}

fn left_out_told(left_out: u64, most: Option<String>) -> String {
    let most = most.map_or(String::new(), |name| {
        format!("; {name:?} has most of those that are in it since half of its room is taken")
    });
    format!("{left_out} refused commands of the last 15 to 30 minutes are left out of the audit trail{most}")
}

/// When the table was looked at last, and when a warning was logged.
#[derive(Debug)]
pub struct Watch {
    looked: Instant,
    said: Option<Instant>,
}

impl Watch {
    /// One that looks a while from now.
    pub fn new(now: Instant) -> Self {
        Self { looked: now, said: None }
    }

    /// Whether it is time to look.
    pub fn looks(&mut self, now: Instant) -> bool {
        let is_time = now.duration_since(self.looked) >= LOOK_EVERY;
        if is_time {
            self.looked = now;
        }
        is_time
    }

    /// Whether it is time to say so again.
    pub fn says(&mut self, now: Instant) -> bool {
        let is_time = self.said.is_none_or(|said| now.duration_since(said) >= SAY_EVERY);
        if is_time {
            self.said = Some(now);
        }
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_often_and_says_so_seldom() {
        let begin = Instant::now();
        let mut watch = Watch::new(begin);
        let (mut looks, mut lines) = (0, 0);
        for second in 1..=1_300 {
            let now = begin + Duration::from_secs(second);
            if watch.looks(now) {
                looks += 1;
                lines += u32::from(watch.says(now));
            }
        }
        assert_eq!((looks, lines), (130, 3));
    }

    #[test]
    fn who_has_most_is_named_where_anybody_is_known() {
        assert!(left_out_told(3, Some("eve\n".into())).contains(r#"the audit trail; "eve\n" has most of those"#));
        assert!(
            left_out_told(3, None)
                .ends_with("3 refused commands of the last 15 to 30 minutes are left out of the audit trail")
        );
        assert!(told(7, Some(("eve\n".into(), 5))).contains(r#"; "eve\n" has most of them, 5; "#));
        assert!(
            told(7, None)
                .starts_with("7 of the 8589934592 bytes for outcomes kept for retries are taken; at the bound")
        );
    }
}
