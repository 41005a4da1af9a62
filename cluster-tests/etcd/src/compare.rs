//! Compares what a server did with what etcd did.
//!
//! Owns the known differences: each has a reason, and one that is gone is as much of a failure as a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::transcript::{Group, Step, from_text};

/// Differences that have the same reason.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Why they are there.
    pub reason: String,
    /// Cases that go another way altogether.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub cases: BTreeSet<String>,
    /// Steps of cases, counted from 0, and what Quorate answers there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, BTreeMap<usize, Value>>,
}

/// Cases by `group/name`.
pub type Cases = BTreeMap<String, Vec<Step>>;

/// All cases of all groups.
pub fn flat(groups: BTreeMap<String, Group>) -> Cases {
    let cases = groups
        .into_iter()
        .flat_map(|(group, cases)| cases.into_iter().map(move |(name, steps)| (format!("{group}/{name}"), steps)));
    cases.collect()
}

/// What etcd did.
pub fn kept_groups() -> BTreeMap<String, Group> {
    let groups = KEPT.iter().map(|(group, text)| {
        ((*group).to_owned(), from_text(text).unwrap_or_else(|error| panic!("{group}.json: {error}")))
    });
    groups.collect()
}

/// What etcd did, and the known differences.
pub fn kept() -> (Cases, Vec<Known>) {
    let known = serde_json::from_str(include_str!("../etcd/differences.json"));
    (flat(kept_groups()), known.unwrap_or_else(|error| panic!("differences.json: {error}")))
}

macro_rules! kept {
    ($($group:literal),* $(,)?) => {
        const KEPT: &[(&str, &str)] = &[$(($group, include_str!(concat!("../etcd/", $group, ".json")))),*];
    };
}
kept! {
    "range", "put", "delete", "txn", "compact", "watch", "lease", "lock", "election", "gateway", "cluster", "maintenance", "auth",
}

/// A difference that nobody knew of, or one that is gone.
pub struct Surprise {
    /// What it is, with what was asked.
    pub text: String,
    /// Where it is, and what Quorate answered: what a known difference would say.
    pub step: Option<(String, usize, Value)>,
}

/// Compares cases that ran; those that did not are not missed.
pub fn compare(etcd: &Cases, quorate: &Cases, known: &[Known]) -> Vec<Surprise> {
    let mut surprises = Vec::new();
    for (case, did) in quorate {
        let Some(does) = etcd.get(case) else {
            surprises.push(Surprise { text: format!("{case}: nothing is kept of it; record it"), step: None });
            continue;
        };
        if known.iter().any(|known| known.cases.contains(case)) {
            if does == did {
                surprises.push(gone(case, ""));
            }
            continue;
        }
        let steps: BTreeMap<_, _> = known.iter().filter_map(|known| known.steps.get(case)).flatten().collect();
        compare_steps(case, does, did, &steps, &mut surprises);
    }
    for case in known.iter().flat_map(|known| known.cases.iter().chain(known.steps.keys())) {
        if !etcd.contains_key(case) {
            surprises.push(gone(case, ": there is no such case"));
        }
    }
    surprises
}

fn gone(case: &str, why: &str) -> Surprise {
    Surprise { text: format!("{case}: a known difference is none any more{why}"), step: None }
}

fn compare_steps(
    case: &str,
    does: &[Step],
    did: &[Step],
    known: &BTreeMap<&usize, &Value>,
    surprises: &mut Vec<Surprise>,
) {
    for n in 0..does.len().max(did.len()) {
        let (expected, found) = (does.get(n), did.get(n));
        let answer = found.and_then(|step| step.answered.clone()).unwrap_or_default();
        match known.get(&n) {
            _ if expected == found && known.contains_key(&n) => surprises.push(gone(case, &format!(" (step {n})"))),
            _ if expected == found => {}
            Some(known) if **known == answer => {}
            _ => surprises
                .push(Surprise { text: described(case, n, expected, found), step: Some((case.to_owned(), n, answer)) }),
        }
    }
}

fn described(case: &str, n: usize, expected: Option<&Step>, found: Option<&Step>) -> String {
    let line =
        |step: Option<&Step>| step.map_or("nothing".to_owned(), |step| serde_json::to_string(step).expect("JSON"));
    let mut text = format!("{case}, step {n}");
    let _ = match (expected, found) {
        (Some(expected), Some(found)) if expected.call == found.call && expected.asked == found.asked => {
            let value = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
            write!(
                text,
                ": {} {}\n  etcd    {}\n  Quorate {}",
                expected.call,
                value(&expected.asked),
                value(&expected.answered),
                value(&found.answered)
            )
        }
        _ => write!(text, "\n  etcd    {}\n  Quorate {}", line(expected), line(found)),
    };
    text
}
