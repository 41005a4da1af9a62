//! When the clock of a cluster may have stood still: what ends with time may end so much later, and no more.
//!
//! Owns what is allowed for a fault. A fault alone is no excuse: a cluster that goes on committing has a clock that goes on. So only such
//! time counts in which a fault was on, or a new leader missing behind one, and in which nothing was certainly committed.

use std::ops::Range;

use super::file::History;
use super::record::{Decided, Micros, Seen};

/// A cluster that committed nothing for less may just not have been asked.
const SILENCE_MIN: Micros = 100_000;

/// See the head of this file.
#[derive(Debug)]
pub struct Outages(Vec<Range<Micros>>);

impl Outages {
    /// Those of a history.
    pub fn of(history: &History) -> Self {
        let failover = history.header.failover_ms * 1_000;
        let faults: Vec<_> = history.faults.iter().map(|fault| fault.begin..fault.end + failover).collect();
        let within = |silence: &Range<Micros>| {
            let common = |fault: &Range<Micros>| silence.start.max(fault.start)..silence.end.min(fault.end);
            faults.iter().map(common).filter(|common| !common.is_empty()).collect::<Vec<_>>()
        };
        let mut stretches: Vec<_> = silences(history).iter().flat_map(within).collect();
        stretches.sort_unstable_by_key(|stretch| stretch.start);
        Self(stretches)
    }

    /// How much of the time between two moments they take, in microseconds. What several cover counts once.
    pub fn between(&self, begin: Micros, end: Micros) -> Micros {
        let (mut covered, mut sum) = (begin, 0);
        for Range { start, end: until } in &self.0 {
            let (from, to) = ((*start).max(covered), (*until).min(end));
            sum += to.saturating_sub(from);
            covered = covered.max(to);
        }
        sum
    }
}

/// The stretches in which nothing was certainly committed: from the begin of what may have been the last to the end of what may have
/// been the next.
fn silences(history: &History) -> Vec<Range<Micros>> {
    // What is refused, or was done before, may be answered without a commit.
    let is_done = |decided: &Decided| !decided.replayed && !matches!(decided.seen, Seen::Refused(_));
    let commits = history.records.iter().filter(|record| !record.operation.is_read());
    let mut commits: Vec<_> = commits.filter(|record| record.decided().is_some_and(is_done)).collect();
    commits.sort_unstable_by_key(|record| record.end);
    let (mut silences, mut since) = (Vec::new(), 0);
    for record in commits {
        if record.call >= since {
            silences.push(since..record.end);
            since = record.call;
        }
    }
    silences.push(since..Micros::MAX);
    silences.retain(|silence| silence.end - silence.start >= SILENCE_MIN);
    silences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Header;
    use crate::operation::{Operation, Write};
    use crate::record::{Fault, Outcome, Record};

    fn fault(begin: Micros, end: Micros) -> Fault {
        Fault { kind: "kill".into(), node: 1, begin, end }
    }

    fn history(faults: Vec<Fault>, commits: &[(Micros, Micros)]) -> History {
        let seen = Seen::Done;
        let outcome = Outcome::Decided(Decided { revision: 2, index: 3, replayed: false, seen });
        let record = |(id, (call, end)): (u64, &(Micros, Micros))| Record {
            id,
            process: 1,
            operation: Operation::Write(Write::put("k", "v")),
            request_id: None,
            call: *call,
            end: *end,
            outcome: outcome.clone(),
            tries: Vec::new(),
        };
        let records = (0..).zip(commits).map(record).collect();
        History { header: Header { failover_ms: 2, ..Header::default() }, records, faults, ..History::default() }
    }

    #[test]
    fn time_that_several_faults_cover_counts_once() {
        // The third begins before the first has its new leader and lasts beyond the second.
        let faults = vec![fault(10_000, 20_000), fault(25_000, 30_000), fault(21_000, 40_000), fault(900_000, 910_000)];
        let outages = Outages::of(&history(faults, &[]));
        for (begin, end, expected) in [
            (0, 1_000_000, 44_000),
            (15_000, 25_000, 10_000),
            (41_000, 905_000, 6_000),
            (911_000, 912_000, 1_000),
            (50_000, 80_000, 0),
            (45_000, 44_000, 0),
        ] {
            assert_eq!(outages.between(begin, end), expected, "from {begin} to {end}");
        }
    }

    #[test]
    fn a_cluster_that_commits_under_a_fault_has_no_excuse() {
        let busy: Vec<_> = (0..200).map(|nth| (nth * 10_000, nth * 10_000 + 5_000)).collect();
        let faults = || vec![fault(500_000, 1_500_000)];
        assert_eq!(Outages::of(&history(faults(), &busy)).between(0, 2_000_000), 0);
        let pause: Vec<_> = busy.iter().copied().filter(|(call, _)| !(700_000..1_000_000).contains(call)).collect();
        // From the begin of the last before to the end of the first after.
        assert_eq!(Outages::of(&history(faults(), &pause)).between(0, 2_000_000), 315_000);
        assert_eq!(Outages::of(&history(Vec::new(), &pause)).between(0, 2_000_000), 0, "nothing was wrong");
    }
}
