//! C12: once the last fault is undone, writes go on within 5 s, and there are no 5 s any more in which nothing succeeds.
//!
//! Owns the time after the faults. Says nothing of a history whose faults never ended, and nothing against single tries that took
//! too long: on a busy machine some do.

use crate::record::{Micros, Record};
use crate::{Counterexample, History, Verdict};

/// How long the first write may take once the last fault is undone, and how long anything may take from then on to succeed; the
/// history may add to it.
const RECOVERY: Micros = 5_000_000;

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let Some(healed) = history.healed else {
        return match history.faults.len() {
            0 => Verdict::Holds(0),
            faults => Verdict::Unknown(format!("{faults} faults, and nobody said that they are over")),
        };
    };
    let recovery = RECOVERY + history.header.slack_ms * 1_000;
    let after: Vec<&Record> = history.records.iter().filter(|record| record.call >= healed).collect();
    let writes = || after.iter().filter(|record| !record.operation.is_read());
    let first = writes().filter(|record| record.decided().is_some()).map(|record| record.end).min();
    match (first, writes().next()) {
        (_, None) => return Verdict::Unknown("nothing was written after the faults".into()),
        (Some(first), _) if first <= healed + recovery => {}
        (_, Some(write)) => {
            let what = format!("no write succeeded within {} s after the faults", recovery / 1_000_000);
            return Verdict::Broken(Counterexample::new(what, [write.id]));
        }
    }
    let last_call = after.iter().map(|record| record.call).max().unwrap_or(healed);
    let mut ends: Vec<Micros> =
        after.iter().filter(|record| record.decided().is_some()).map(|record| record.end).collect();
    ends.extend([healed, last_call]);
    ends.sort_unstable();
    for gap in ends.windows(2).filter(|pair| pair[1] - pair[0] > recovery) {
        let waiting = after.iter().filter(|record| (gap[0]..gap[1] - recovery).contains(&record.call));
        let waiting: Vec<u64> = waiting.map(|record| record.id).collect();
        // Where nobody asks, nothing succeeds.
        if !waiting.is_empty() {
            let what = format!("long after the faults nothing succeeded for {} ms", (gap[1] - gap[0]) / 1_000);
            return Verdict::Broken(Counterexample::new(what, waiting));
        }
    }
    Verdict::Holds(after.len() as u64)
}
