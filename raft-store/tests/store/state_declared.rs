//! Collections and sequences as readers see them, and what a step of building an index takes.

use std::time::{Duration, Instant};

use quorate_machine::document::Json;
use quorate_machine::rules::{CollectionName, Rules, SequenceName};
use quorate_machine::types::{
    Action, Change, Command, ContentKind, Expect, IndexStage, Maintenance, NumbersOp, RulesChange, RulesOp, Value,
};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::state::StateReader;

use crate::state_support::*;

/// What the leader asks for at a time.
const STEP_ROWS: u32 = 256;
/// Longest apply of such a step. `scripts/run-test` says that nothing else runs at the same time.
const STEP_MAX: Duration = Duration::from_millis(500);

fn name(text: &str) -> CollectionName {
    CollectionName::new(text).unwrap()
}

fn rules(of: &str, text: Option<&str>) -> Command {
    let change = match text {
        Some(text) => RulesChange::Set(Rules::read(&Json::parse(text.as_bytes()).unwrap(), "").unwrap()),
        None => RulesChange::Remove,
    };
    Command::unnamed(Action::Rules(RulesOp { name: name(of), expect: Expect::ANY, change }))
}

fn document(key_text: String, text: String) -> Command {
    write(key(key_text), Change::Put(Value { kind: ContentKind::Json, data: text.into_bytes() }))
}

/// Pages of at most so many, and of so many bytes, as names.
fn pages(reader: &StateReader, limit: usize, bytes_max: usize) -> Vec<Vec<String>> {
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let page = reader.collections(after.as_ref(), limit, bytes_max).unwrap();
        pages.push(page.collections.iter().map(|(name, _)| name.to_string()).collect());
        if !page.more {
            return pages;
        }
        after = page.collections.last().map(|(name, _)| name.clone());
    }
}

#[test]
fn collections_come_in_pages_and_sequences_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        let commands: Vec<_> = ["b", "a/x", "c", "a/b"].map(|of| rules(of, Some("{}"))).into();
        apply(&mut state, vec![blank(0), batch(1, 0, &commands)]).await;
        assert_eq!(pages(&reader, 10, usize::MAX), [["a/b", "a/x", "b", "c"]]);
        assert_eq!(pages(&reader, 2, usize::MAX), [["a/b", "a/x"], ["b", "c"]]);
        assert_eq!(pages(&reader, 10, 1), [["a/b"], ["a/x"], ["b"], ["c"]], "a page has one at least");
        let (at, found) = reader.collection(&name("a/x")).unwrap();
        assert_eq!((at.index, found.map(|row| row.mod_revision)), (1, Some(3)));
        assert_eq!(reader.collection(&name("a")).unwrap().1, None);

        let sequence = SequenceName::new("s").unwrap();
        assert_eq!(reader.last_number(&sequence).unwrap().1, 0);
        let draw = NumbersOp { name: sequence.clone(), count: 7 };
        apply(&mut state, vec![batch(2, 0, &[Command::unnamed(Action::Numbers(draw)), rules("b", None)])]).await;
        assert_eq!(reader.last_number(&sequence).unwrap().1, 7);
        assert_eq!(pages(&reader, 10, usize::MAX), [["a/b", "a/x", "c"]]);
    });
}

/// Steps until there is no work; gives the longest apply, and how many.
async fn work(state: &mut StateMachine, reader: &StateReader, next_index: &mut u64) -> (Duration, u64) {
    let (mut longest, mut steps) = (Duration::ZERO, 0);
    while reader.has_index_work().unwrap() {
        let step = maintain(Maintenance::Indexes { rows_max: STEP_ROWS });
        let entry = batch(*next_index, 0, &[step]);
        #[expect(clippy::disallowed_methods, reason = "the time itself is what is looked at")]
        let begin = Instant::now();
        apply(state, vec![entry]).await;
        longest = longest.max(begin.elapsed());
        (*next_index, steps) = (*next_index + 1, steps + 1);
        assert!(steps < 1_000, "the work never ends");
    }
    (longest, steps)
}

#[test]
fn a_step_of_an_index_stalls_nobody_and_the_work_comes_to_an_end() {
    const DOCUMENTS: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        apply(&mut state, vec![blank(0)]).await;
        assert!(!reader.has_index_work().unwrap(), "nothing is declared");
        let mut index = 1;
        for first in (0..DOCUMENTS).step_by(1_000) {
            let text = |n: u64| format!(r#"{{"n":{n},"group":{},"text":"{}"}}"#, n % 97, "x".repeat(200));
            let commands: Vec<_> = (first..first + 1_000).map(|n| document(format!("c/{n:05}"), text(n))).collect();
            apply(&mut state, vec![batch(index, 0, &commands)]).await;
            index += 1;
        }
        let declared = r#"{"indexes":[["group","n"],{"fields":["n"],"unique":true}]}"#;
        apply(&mut state, vec![batch(index, 0, &[rules("c", Some(declared)), rules("empty", Some(declared))])]).await;
        index += 1;
        let (longest, steps) = work(&mut state, &reader, &mut index).await;
        println!("building: {steps} steps of {STEP_ROWS} rows, the longest apply took {longest:?}");
        assert!(longest < STEP_MAX, "a step held up everything for {longest:?}");
        assert!(steps >= 2 * DOCUMENTS / u64::from(STEP_ROWS), "{steps} steps");
        let row = reader.collection(&name("c")).unwrap().1.unwrap();
        assert!(row.indexes.iter().all(|state| state.stage == IndexStage::Ready), "{:?}", row.indexes);

        apply(&mut state, vec![batch(index, 0, &[rules("c", None), rules("empty", None)])]).await;
        index += 1;
        assert!(reader.has_index_work().unwrap(), "what was dropped is to be cleared though nothing is declared");
        let (longest, steps) = work(&mut state, &reader, &mut index).await;
        println!("clearing: {steps} steps, the longest apply took {longest:?}");
        assert!(longest < STEP_MAX, "a step held up everything for {longest:?}");
    });
}
