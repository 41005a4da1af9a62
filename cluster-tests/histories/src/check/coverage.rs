//! C13: whether enough happened for the other verdicts to mean something.
//!
//! Owns the counts that a run requires of itself, of what succeeded: a refusal, a place in a queue or an empty claim is none. Never
//! says that something is broken: where too little happened, nothing is known.

use std::collections::BTreeMap;

use crate::record::{Micros, Record};
use crate::{History, Verdict};

/// No more than one in so many operations may be of unknown outcome.
const UNKNOWN_SHARE: usize = 5;

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let decided = history.records.iter().filter(|record| record.decided().is_some()).count();
    let unknown = history.records.iter().filter(|record| record.is_unknown()).count();
    if decided == 0 || unknown * UNKNOWN_SHARE > history.records.len() {
        return Verdict::Unknown(format!("{decided} operations were decided, {unknown} are of unknown outcome"));
    }
    let faults = history.faults.len() as u64;
    if faults < history.header.faults_min {
        return Verdict::Unknown(format!("{faults} faults of {}", history.header.faults_min));
    }
    for (phase, from, until) in phases(history) {
        let within = |record: &&Record| record.is_success() && (from..until).contains(&record.call);
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for record in history.records.iter().filter(within) {
            *kinds.entry(record.operation.kind()).or_default() += 1;
        }
        for requirement in &history.header.requirements {
            let count = kinds.get(requirement.kind.as_str()).copied().unwrap_or(0);
            if count < requirement.at_least {
                return Verdict::Unknown(format!("{count} of {} {} {phase}", requirement.at_least, requirement.kind));
            }
        }
    }
    Verdict::Holds(decided as u64)
}

/// The parts of the run: name, begin, end.
fn phases(history: &History) -> Vec<(&'static str, Micros, Micros)> {
    let first = history.faults.iter().map(|fault| fault.begin).min();
    match (first, history.healed) {
        (Some(first), Some(healed)) => {
            vec![
                ("before the faults", 0, first),
                ("during the faults", first, healed),
                ("after the faults", healed, Micros::MAX),
            ]
        }
        _ => vec![("in all", 0, Micros::MAX)],
    }
}
