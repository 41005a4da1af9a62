//! C7: sessions and entries that live for a while never end early, and end late by no more than the failovers in between.
//!
//! Owns the bounds, all by the clock of those who ask: what was renewed by a request sent at a time lives at least until that
//! time and its time to live, and longer by all time in which nobody could have renewed it, since no quorum was there. Never looks
//! at a clock of a node.

use std::collections::BTreeMap;

use crate::operation::{Operation, Write};
use crate::outages::Outages;
use crate::record::{Micros, Record, Refused, Seen};
use crate::{Counterexample, History, Verdict};

/// How much earlier than promised something may end: clocks run differently fast.
const TOLERANCE: Micros = 50_000;
/// How much later, beside failovers: deadlines are looked at each second.
const LATE: Micros = 1_500_000;

/// The fault in which all nodes but one stand still, as it is called in histories.
pub const FREEZE: &str = "Freeze";
/// How much of such a fault may count: a leader counts on being heard until its lease is over.
const FREEZE_COUNTED: Micros = 500_000;

type Checked = Result<u64, Box<Counterexample>>;

/// What is known of a session's life.
#[derive(Debug, Clone, Default)]
pub struct Life {
    /// It certainly lives until then, once it was created.
    pub certain_until: Micros,
    /// Its time to live.
    ttl: Micros,
    /// Who proved that last.
    witness: u64,
    /// When somebody first asked to end it.
    end_asked: Option<Micros>,
}

/// When there was no quorum for certain.
struct Standstills(Vec<(Micros, Micros)>);

impl Standstills {
    fn of(history: &History) -> Self {
        let healed = history.healed.unwrap_or(Micros::MAX);
        let freezes = history.faults.iter().filter(|fault| fault.kind == FREEZE);
        let mut stretches: Vec<_> = freezes.map(|fault| (fault.begin, fault.end.min(healed))).collect();
        stretches.sort_unstable();
        Self(stretches)
    }

    /// Until when something certainly lives that was given so much time by a request that was sent then.
    fn certain_until(&self, sent: Micros, ttl: Micros) -> Micros {
        let mut until = sent + (ttl - ttl / 100).saturating_sub(TOLERANCE);
        for (begin, end) in &self.0 {
            if *end > sent && *begin < until {
                until += (end - sent.max(*begin)).saturating_sub(FREEZE_COUNTED);
            }
        }
        until
    }
}

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let lives = lives(history);
    let judged = check_early(history, &lives)
        .and_then(|early| Ok(early + check_late(history, &lives)? + check_entries(history)?));
    Verdict::of(judged)
}

/// Until when each session certainly lives.
pub fn lives(history: &History) -> BTreeMap<&str, Life> {
    let standstills = Standstills::of(history);
    let mut lives: BTreeMap<&str, Life> = BTreeMap::new();
    let mut alive = |session, record: &Record, ttl: Option<Micros>| {
        let life: &mut Life = lives.entry(session).or_default();
        life.ttl = ttl.unwrap_or(life.ttl);
        let until = standstills.certain_until(record.call, life.ttl);
        if until > life.certain_until {
            (life.certain_until, life.witness) = (until, record.id);
        }
    };
    let is_open = |record: &&Record| matches!(record.operation, Operation::OpenSession { .. });
    let (opened, rest): (Vec<_>, Vec<_>) = history.records.iter().partition(is_open);
    for record in opened.into_iter().chain(rest) {
        match (&record.operation, record.decided().map(|decided| &decided.seen)) {
            (Operation::OpenSession { ttl_ms }, Some(Seen::Session(id))) => alive(id, record, Some(ttl_ms * 1_000)),
            (Operation::Renew { session }, Some(Seen::Session(_))) => alive(session, record, None),
            _ => {}
        }
    }
    for record in &history.records {
        if let Operation::EndSession { session } = &record.operation
            && let Some(life) = lives.get_mut(session.as_str())
        {
            let asked = life.end_asked.map_or(record.call, |asked| asked.min(record.call));
            life.end_asked = Some(asked);
            life.certain_until = life.certain_until.min(asked);
        }
    }
    lives
}

/// The session that an operation needs.
fn session_of(operation: &Operation) -> Option<&str> {
    match operation {
        Operation::Renew { session } | Operation::Acquire { session, .. } => Some(session),
        _ => None,
    }
}

/// Nobody is told that a session is over before its time.
fn check_early(history: &History, lives: &BTreeMap<&str, Life>) -> Checked {
    let mut checked = 0;
    for record in &history.records {
        let Some(life) = session_of(&record.operation).and_then(|session| lives.get(session)) else { continue };
        let Some(Seen::Refused(Refused { code, .. })) = record.decided().map(|decided| &decided.seen) else { continue };
        if code != "session_expired" {
            continue;
        }
        checked += 1;
        if record.end < life.certain_until {
            let early = (life.certain_until - record.end) / 1_000;
            let what = format!("a session was over at least {early} ms before its time");
            return Err(Counterexample::new(what, [life.witness, record.id]));
        }
    }
    Ok(checked)
}

/// Nobody is served for a session long after its time.
fn check_late(history: &History, lives: &BTreeMap<&str, Life>) -> Checked {
    let mut by_session: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in &history.records {
        let session = match (&record.operation, record.decided().map(|decided| &decided.seen)) {
            (Operation::OpenSession { .. }, Some(Seen::Session(id))) => Some(id.as_str()),
            (operation, _) => session_of(operation),
        };
        if let Some(session) = session {
            by_session.entry(session).or_default().push(record);
        }
    }
    let outages = Outages::of(history);
    let mut checked = 0;
    for (session, records) in by_session {
        let Some(life) = lives.get(session) else { continue };
        let renews =
            |record: &&&Record| matches!(record.operation, Operation::OpenSession { .. } | Operation::Renew { .. });
        let served = |record: &&&Record| {
            matches!(
                record.decided().map(|decided| &decided.seen),
                Some(Seen::Session(_) | Seen::Held { .. } | Seen::Waiting)
            )
        };
        for record in records.iter().filter(served) {
            let before =
                records.iter().filter(renews).filter(|other| other.call < record.call && other.id != record.id);
            // Whatever was sent may have arrived until its client gave up, or later where that is not known.
            let last = before.map(|other| if other.is_unknown() { Micros::MAX } else { other.end }).max();
            let Some(last) = last.filter(|last| *last < record.call) else { continue };
            checked += 1;
            let bound = last + life.ttl + LATE + outages.between(last, record.call);
            if record.call > bound {
                let what = format!(
                    "session {session} was served {} ms after its time",
                    (record.call - last - life.ttl) / 1_000
                );
                return Err(Counterexample::new(what, [life.witness, record.id]));
            }
        }
    }
    Ok(checked)
}

/// The same of entries that live for a while and were written once.
fn check_entries(history: &History) -> Checked {
    let (standstills, outages) = (Standstills::of(history), Outages::of(history));
    let mut writers: BTreeMap<&str, Vec<(&Write, &Record)>> = BTreeMap::new();
    for record in &history.records {
        for write in record.operation.writes() {
            writers.entry(&write.key).or_default().push((write, record));
        }
    }
    let mut checked = 0;
    for record in &history.records {
        let (Operation::Get { key }, Some(decided)) = (&record.operation, record.decided()) else { continue };
        let Some([(Write { ttl_ms: Some(ttl_ms), .. }, writer)]) = writers.get(key.as_str()).map(Vec::as_slice) else {
            continue;
        };
        let (Some(written), Seen::Entry(entry)) = (writer.decided(), &decided.seen) else { continue };
        if !matches!(written.seen, Seen::Written(_)) || record.call <= writer.end {
            continue;
        }
        checked += 1;
        let ttl = ttl_ms * 1_000;
        let certain_until = standstills.certain_until(writer.call, ttl);
        let latest = writer.end + ttl + LATE + outages.between(writer.end, record.call);
        let wrong = match entry {
            None if record.end < certain_until => "was gone before its time",
            Some(_) if record.call > latest => "was there long after its time",
            _ => continue,
        };
        return Err(Counterexample::new(
            format!("{key}, which lives for {ttl_ms} ms, {wrong}"),
            [writer.id, record.id],
        ));
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Decided, Fault, Outcome, Try};

    const SECOND: Micros = 1_000_000;

    fn record(id: u64, operation: Operation, call: Micros, end: Micros, seen: Seen) -> Record {
        let outcome = Outcome::Decided(Decided { revision: 1, index: 1, replayed: false, seen });
        let tries = vec![Try { node: 1, call, end, outcome: outcome.clone() }];
        Record { id, process: id, operation, request_id: None, call, end, outcome, tries }
    }

    fn over() -> Seen {
        Seen::Refused(Refused { code: "session_expired".into(), current: None })
    }

    /// A session of five seconds, renewed after one. The next renewal is refused then. Followers may stand still from 1.5 s to 13.5 s.
    fn judge(refused: Micros, stands_still: bool, healed: Option<Micros>) -> Verdict {
        let (open, renew) = (Operation::OpenSession { ttl_ms: 5_000 }, Operation::Renew { session: "s".into() });
        let records = vec![
            record(0, open, 0, 10, Seen::Session("s".into())),
            record(1, renew.clone(), SECOND, SECOND + 10, Seen::Session("s".into())),
            record(2, renew, 3 * SECOND, refused, over()),
        ];
        let freeze = Fault { kind: FREEZE.into(), node: 1, begin: 3 * SECOND / 2, end: 27 * SECOND / 2 };
        let faults = if stands_still { vec![freeze] } else { Vec::new() };
        check(&History { records, faults, healed, ..History::default() })
    }

    #[test]
    fn no_session_ends_by_time_in_which_nobody_could_renew_it() {
        assert!(matches!(judge(136 * SECOND / 10, true, None), Verdict::Broken(_)), "the outage counted");
        assert!(matches!(judge(17 * SECOND, true, None), Verdict::Broken(_)));
        assert!(matches!(judge(18 * SECOND, true, None), Verdict::Holds(_)), "its own time was over");
        assert!(matches!(judge(7 * SECOND, false, None), Verdict::Holds(_)), "nothing was wrong");
        assert!(matches!(judge(5 * SECOND, false, None), Verdict::Broken(_)));
    }

    #[test]
    fn a_standstill_that_was_cut_short_counts_as_far_as_it_went() {
        assert!(matches!(judge(75 * SECOND / 10, true, Some(4 * SECOND)), Verdict::Broken(_)));
        assert!(matches!(judge(9 * SECOND, true, Some(4 * SECOND)), Verdict::Holds(_)));
    }
}
