//! Quotas as readers see them, in backups and after a restore, and that a check counts anew what they count.

use std::fs::File;

use quorate_machine::limits::REQUEST_BUCKET_MS;
use quorate_machine::query::QuotaUse;
use quorate_machine::types::{
    Action, Command, Maintenance, PrincipalUse, QuotaBounds, QuotaOp, QuotaSubject, SessionOp,
};
use quorate_store::adapters::state_machine::StateMachine;
use quorate_store::backup::Taker;
use quorate_store::offline::restore;
use quorate_store::state::{StateOptions, StateReader};

use crate::offline::chosen;
use crate::state_support::*;

fn prefix(text: &str) -> QuotaSubject {
    QuotaSubject::Prefix(text.into())
}

fn principal(name: &str) -> QuotaSubject {
    QuotaSubject::Principal(name.into())
}

fn set(subject: QuotaSubject, bounds: QuotaBounds) -> Command {
    Command::unnamed(Action::Quota(QuotaOp::Set { subject, bounds }))
}

fn begin(name: &str) -> Command {
    let create = SessionOp::Create { ttl_ms: 60_000, owner: String::new(), labels: Vec::new() };
    Command { principal: name.into(), ..Command::unnamed(Action::Session(create)) }
}

const TEN: QuotaBounds = QuotaBounds { entries: Some(10), sessions: None, locks: None, bytes: None, tasks: None };
const TWO: QuotaBounds = QuotaBounds { sessions: Some(2), entries: None, locks: None, bytes: None, tasks: None };

/// Entries of before the quota of their prefix, sessions of three users, and quotas of two of those.
async fn fill(state: &mut StateMachine) {
    apply(state, vec![blank(0), batch(1, 1, &[put("t/a", "1"), put("t/b", "22")])]).await;
    let commands = [
        set(prefix("t/"), TEN),
        set(prefix("t/x/"), TEN),
        set(principal("ann"), TWO),
        set(principal("dan"), TWO),
        begin("ann"),
        begin("ann"),
        begin("bob"),
        begin("cid"),
    ];
    apply(state, vec![batch(2, 2, &commands)]).await;
}

async fn count(state: &mut StateMachine, reader: &StateReader, from: u64) {
    let mut index = from;
    while reader.has_counting_work().unwrap() {
        apply(state, vec![batch(index, 3, &[maintain(Maintenance::Count)])]).await;
        index += 1;
        assert!(index < from + 100, "it does not end");
    }
}

fn entries_of(reader: &StateReader, text: &str) -> (u64, bool) {
    let read = reader.quota(&prefix(text)).unwrap().found.expect("there is one");
    match read.used {
        QuotaUse::Prefix(used) => (used.entries, read.is_counting),
        other => panic!("{other:?}"),
    }
}

#[test]
fn quotas_are_listed_with_what_is_used_page_by_page() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    runtime().block_on(async {
        fill(&mut state).await;
        assert_eq!(entries_of(&reader, "t/"), (0, true));
        count(&mut state, &reader, 3).await;
    });
    assert_eq!((entries_of(&reader, "t/"), entries_of(&reader, "t/x/")), ((2, false), (0, false)));
    assert_eq!(reader.quota(&prefix("t")).unwrap().found, None);
    let usual = reader.quota(&QuotaSubject::Default).unwrap().found.expect("it holds for all");
    assert_eq!((usual.row, usual.bounds), (None, QuotaBounds::USUAL));

    let first = reader.principal_quotas(None, 3).unwrap().found;
    let told: Vec<_> =
        first.items.iter().map(|(subject, read)| (subject.clone(), read.row.is_some(), read.used.clone())).collect();
    let uses = |sessions| QuotaUse::Principal(PrincipalUse { sessions, locks: 0 });
    let expected =
        [(principal("ann"), true, uses(2)), (principal("bob"), false, uses(1)), (principal("cid"), false, uses(1))];
    assert_eq!((told.as_slice(), first.more), (&expected[..], true));
    let rest = reader.principal_quotas(Some("cid"), 3).unwrap().found;
    assert!(
        !rest.more
            && matches!(&rest.items[..], [(subject, read)] if *subject == principal("dan") && read.used == uses(0))
    );
    let prefixes = reader.prefix_quotas(None, 1).unwrap().found;
    assert!(prefixes.more && prefixes.items[0].0 == prefix("t/"));
    let rest = reader.prefix_quotas(Some(b"t/"), 1).unwrap().found;
    assert!(!rest.more && rest.items[0].0 == prefix("t/x/"));
}

#[test]
fn a_backup_keeps_quotas_and_what_they_count_is_counted_anew_after_it() {
    let (old, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut state, reader) = open(old.path());
    runtime().block_on(async {
        fill(&mut state).await;
        count(&mut state, &reader, 3).await;
    });
    let path = dir.path().join("backup");
    let taker = Taker { cluster_id: 77, node_id: 1, node_version: "test".into(), now: 5 };
    reader.back_up(taker, File::create(&path).unwrap(), |_| {}).unwrap();
    let data_dir = dir.path().join("data");
    restore(&chosen(&path, &data_dir), |_, _| {}).unwrap();
    let (mut made, after) =
        StateMachine::open(&data_dir, StateOptions { node_id: 4, ..options() }).expect("what was made opens");
    assert_eq!(entries_of(&after, "t/"), (0, true));
    let ann = after.quota(&principal("ann")).unwrap().found.expect("it holds");
    assert_eq!((ann.bounds, ann.used), (TWO, QuotaUse::Principal(PrincipalUse::default())), "its sessions have ended");
    let last = after.applied().log_id.unwrap().index;
    runtime().block_on(count(&mut made, &after, last + 1));
    assert_eq!(entries_of(&after, "t/"), (2, false));
}

#[test]
fn who_has_most_of_what_is_kept_for_retries_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let by = |name: &str, id: &str| Command { principal: name.into(), ..with_id(put("k", "1"), id) };
    runtime().block_on(async {
        apply(&mut state, vec![blank(0), batch(1, 1, &[by("", "a"), by("", "b"), by("", "c")])]).await;
        assert_eq!(reader.largest_keeper().unwrap(), None, "nobody in particular");
        apply(&mut state, vec![batch(2, 2, &[by("ann", "a"), by("bob", "a"), by("bob", "b"), by("cid", "a")])]).await;
    });
    let (name, bytes) = reader.largest_keeper().unwrap().expect("somebody has most");
    assert_eq!(name, "bob");
    assert!(bytes < reader.kept_for_a_while().unwrap().requests / 2, "{bytes} bytes of two of seven");
    // Both living buckets count, and none before them.
    let (next, later) = (REQUEST_BUCKET_MS, 3 * REQUEST_BUCKET_MS);
    runtime().block_on(async {
        apply(&mut state, vec![batch(3, next, &[by("ann", "b"), by("ann", "c")])]).await;
        assert_eq!(reader.largest_keeper().unwrap().expect("somebody has most").0, "ann");
        apply(&mut state, vec![batch(4, later, &[by("cid", "b")])]).await;
    });
    assert_eq!(reader.largest_keeper().unwrap().expect("somebody has most").0, "cid");
}
