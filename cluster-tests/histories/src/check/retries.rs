//! C9: whoever sends a request again, under the same request id, is told the same.
//!
//! Owns comparing all answers under one id. What is told of a place in a queue is told as it is now, that its session has ended
//! included, so only a token counts there; and a claim that found nothing is not kept. Never asks for an answer that is no replay:
//! a node repeats what it has sent to a leader and heard nothing of, so that even a client that asked once may be told a kept one.

use std::collections::HashMap;

use crate::operation::Operation;
use crate::record::{Came, Decided, Record, Refused, Seen};
use crate::{Counterexample, History, Verdict};

/// Judges a history.
pub fn check(history: &History) -> Verdict {
    let mut answers: HashMap<&str, Vec<(&Record, &Decided)>> = HashMap::new();
    for record in history.records.iter().filter(|record| record.operation.is_kept()) {
        let decided = record.tries.iter().filter_map(|each| each.outcome.decided());
        if let Some(id) = &record.request_id {
            answers.entry(id).or_default().extend(decided.map(|decided| (record, decided)));
        }
    }
    let mut checked = 0;
    for (id, answers) in answers.iter().filter(|(_, answers)| answers.len() > 1) {
        let kept: Vec<_> = answers.iter().filter(|(record, decided)| is_kept(&record.operation, decided)).collect();
        checked += kept.len() as u64;
        let firsts: Vec<_> = kept.iter().filter(|(_, decided)| !decided.replayed).collect();
        if firsts.len() > 1 {
            let what = format!("request {id} was carried out {} times", firsts.len());
            return Verdict::Broken(Counterexample::new(what, firsts.iter().map(|(record, _)| record.id)));
        }
        let different = kept.windows(2).find(|pair| !same(&pair[0].0.operation, pair[0].1, pair[1].1));
        if let Some([before, after]) = different {
            let what = format!("request {id} was told {:?} and {:?}", before.1, after.1);
            return Verdict::Broken(Counterexample::new(what, [before.0.id, after.0.id]));
        }
    }
    Verdict::Holds(checked)
}

fn is_kept(operation: &Operation, decided: &Decided) -> bool {
    match (operation, &decided.seen) {
        (Operation::Acquire { .. }, seen) => matches!(seen, Seen::Held { .. }),
        (_, Seen::Claimed(tasks)) => !tasks.is_empty(),
        _ => true,
    }
}

/// Whether two answers under one id agree.
fn same(operation: &Operation, one: &Decided, other: &Decided) -> bool {
    match (operation, &one.seen, &other.seen) {
        (Operation::Acquire { .. }, Seen::Held { token }, Seen::Held { token: again }) => token == again,
        (_, seen, again) => (one.revision, one.index) == (other.revision, other.index) && bare(seen) == bare(again),
    }
}

/// Without the entries that a refusal shows: a version that was compacted since is shown no more.
fn bare(seen: &Seen) -> Seen {
    let bare = |refused: &Refused| Refused { current: None, ..refused.clone() };
    match seen {
        Seen::Refused(refused) => Seen::Refused(bare(refused)),
        Seen::Items(items) => {
            let mut items = items.clone();
            for item in &mut items {
                if let Came::Refused(refused) = &mut item.came {
                    refused.current = None;
                }
            }
            Seen::Items(items)
        }
        seen => seen.clone(),
    }
}
