//! Reads that may be old: a node never shows less than it showed before, nor less than it was asked for.
//!
//! Owns the order of what one node showed. Whether it was true at its revision, and whether anything was newer than now, the witness
//! says.

use std::collections::BTreeMap;

use crate::operation::Operation;
use crate::record::{Decided, Micros, Record};
use crate::{Counterexample, History, Verdict};

/// An answer of one node.
struct Shown<'h> {
    record: &'h Record,
    call: Micros,
    end: Micros,
    decided: &'h Decided,
}

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let mut nodes = BTreeMap::<u64, Vec<Shown<'_>>>::new();
    let mut checked = 0;
    for record in history.records.iter().filter(|record| shows_its_node(&record.operation)) {
        for tried in &record.tries {
            let Some(decided) = tried.outcome.decided() else { continue };
            let asked = match record.operation {
                Operation::Local { min_revision, .. } => min_revision.unwrap_or(0),
                _ => 0,
            };
            if decided.revision < asked {
                let what = format!("revision {asked} was asked for, {} was shown", decided.revision);
                return Verdict::Broken(Counterexample::new(what, [record.id]));
            }
            let shown = Shown { record, call: tried.call, end: tried.end, decided };
            nodes.entry(tried.node).or_default().push(shown);
            checked += u64::from(matches!(record.operation, Operation::Local { .. }));
        }
    }
    let falls = nodes.into_iter().find_map(|(node, shown)| first_fall(node, shown));
    falls.map_or(Verdict::Holds(checked), Verdict::Broken)
}

/// Whether the answer is of what the node itself knows; a transaction may be carried out by another.
fn shows_its_node(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Get { .. } | Operation::Local { .. } | Operation::List { .. } | Operation::Find { .. }
    )
}

/// Whatever was asked of a node after it had shown something shows that or more.
fn first_fall(node: u64, shown: Vec<Shown<'_>>) -> Option<Box<Counterexample>> {
    let mut by_call: Vec<&Shown<'_>> = shown.iter().collect();
    by_call.sort_by_key(|shown| shown.call);
    let mut by_end: Vec<&Shown<'_>> = shown.iter().collect();
    by_end.sort_by_key(|shown| shown.end);
    let (mut ended, mut newest) = (by_end.into_iter().peekable(), None::<&Shown<'_>>);
    for shown in by_call {
        while let Some(before) = ended.next_if(|before| before.end < shown.call) {
            newest = Some(match newest {
                Some(newest) if newest.decided.revision >= before.decided.revision => newest,
                _ => before,
            });
        }
        if let Some(newest) = newest.filter(|newest| newest.decided.revision > shown.decided.revision) {
            let (more, less) = (newest.decided.revision, shown.decided.revision);
            let what = format!("node {node} showed revision {more}, and later no more than {less}");
            return Some(Counterexample::new(what, [newest.record.id, shown.record.id]));
        }
    }
    None
}
