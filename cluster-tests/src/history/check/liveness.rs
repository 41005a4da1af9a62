//! C12: once all faults are over, writes go on within 5 s, and then nothing fails any more.
//!
//! Owns the time after the faults. Says nothing of a history whose faults never ended.

use crate::history::record::{Micros, Record};
use crate::history::{Counterexample, History, Verdict};

/// How long the first write may take once all is well, and after how long nothing may fail.
const RECOVERY: Micros = 5_000_000;

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let Some(healed) = history.healed else {
        return match history.faults.len() {
            0 => Verdict::Holds(0),
            faults => Verdict::Unknown(format!("{faults} faults, and nobody said that they are over")),
        };
    };
    let after: Vec<&Record> = history.records.iter().filter(|record| record.call >= healed).collect();
    let writes = || after.iter().filter(|record| !record.operation.is_read());
    let first = writes().filter(|record| record.decided().is_some()).map(|record| record.end).min();
    match (first, writes().next()) {
        (_, None) => return Verdict::Unknown("nothing was written after the faults".into()),
        (Some(first), _) if first <= healed + RECOVERY => {}
        (_, Some(write)) => {
            let what = format!("no write succeeded within {} s after the faults", RECOVERY / 1_000_000);
            return Verdict::Broken(Counterexample::new(what, [write.id]));
        }
    }
    match after.iter().find(|record| record.call >= healed + RECOVERY && record.decided().is_none()) {
        Some(record) => Verdict::Broken(Counterexample::new("long after the faults this failed", [record.id])),
        None => Verdict::Holds(after.len() as u64),
    }
}
