//! The feature level: the same on all nodes at the same entry, never lower than it was, and never above what a build knows.

use crate::machine_support::Store;
use proptest::prelude::*;
use quorate_machine::command_codec;
use quorate_machine::document::{Criteria, Json, Order};
use quorate_machine::level::{self, KNOWN, TIMES, TooNew};
use quorate_machine::machine::{Fault, Vars};
use quorate_machine::types::{
    Action, Batch, Change, ClaimOp, Command, Expect, Expiry, Key, Maintenance, Outcome, Rejection, RequestId, WriteOp,
};

fn raise(level: u32) -> Batch {
    let action = Action::Maintain(Maintenance::RaiseLevel { level });
    let command = command_codec::encode_command(&Command {
        request_id: None,
        principal: String::new(),
        action,
        access_revision: None,
    });
    Batch { clock: 1, wall: 1, seed: None, commands: vec![command] }
}

#[test]
fn a_build_stops_at_a_level_that_it_does_not_know_and_says_what_to_do() {
    let mut store = Store::default();
    let before = store.vars.clone();
    let fault = store.apply(&[raise(KNOWN + 1)]).expect_err("the level is not known");
    assert_eq!(fault, Fault::TooNew(TooNew { reached: KNOWN + 1 }));
    assert!(fault.to_string().contains("install a newer version"), "{fault}");
    assert_eq!(store.vars, before, "nothing was applied");
}

#[test]
fn a_state_of_a_newer_build_is_refused_by_name() {
    let newer = Vars { level: KNOWN + 1, ..Vars::default() };
    assert_eq!(level::check(newer.level), Err(TooNew { reached: KNOWN + 1 }));
    assert_eq!(level::check(KNOWN), Ok(()));
}

/// What asks when an entry expires: a build of before the level cannot decode it.
fn asks_for_expiry() -> Batch {
    let text = Json::parse(br#"[{"not":{"any":[{"field":"$expires_at","op":"exists"}]}}]"#).unwrap();
    let condition = Criteria::read(&text, "/if").unwrap();
    let op = WriteOp {
        key: Key::new("k").unwrap(),
        expect: Expect::Any,
        condition: condition.clone(),
        change: Change::Remove,
        expiry: Expiry::Keep,
        return_previous: false,
        session: None,
        guard: None,
    };
    let claim = ClaimOp {
        prefix: Vec::new(),
        criteria: condition,
        order: Order::new(Vec::new()),
        limit: 1,
        lock_ms: 1,
        patch: None,
        guard: None,
    };
    let command = |action| {
        let request_id = Some(RequestId("r".into()));
        command_codec::encode_command(&Command { request_id, ..Command::unnamed(action) })
    };
    let commands =
        vec![command(Action::Write(op.clone())), command(Action::Bulk(vec![op])), command(Action::Claim(claim))];
    Batch { clock: 1, wall: 1, seed: None, commands }
}

#[test]
fn what_older_members_cannot_read_is_refused_as_they_refuse_it() {
    let mut unreadable = asks_for_expiry();
    unreadable.commands.iter_mut().for_each(|command| command.truncate(command.len() - 1));
    let mut stores = [asks_for_expiry(), unreadable].map(|batch| {
        let mut store = Store::default();
        let (replies, _) = store.apply(&[batch]).unwrap();
        let refused = replies.iter().flatten().all(|reply| {
            matches!(&reply.outcome, Outcome::Rejected(Rejection::Unsupported(why)) if why.contains("cannot decode"))
        });
        assert!(refused, "{replies:?}");
        store
    });
    assert_eq!(stores[0].vars, stores[1].vars, "a build that knows it leaves what one leaves that does not");
    let (replies, _) = stores[0].apply(&[raise(TIMES), asks_for_expiry()]).unwrap();
    assert!(matches!(replies[1][0].outcome, Outcome::Rejected(Rejection::NotFound)), "{replies:?}");
}

proptest! {
    #[test]
    fn the_level_is_the_highest_so_far_however_entries_are_grouped(levels in prop::collection::vec(0..=KNOWN, 1..20), cut in any::<prop::sample::Index>()) {
        let batches: Vec<_> = levels.iter().map(|level| raise(*level)).collect();
        let (mut one, mut other) = (Store::default(), Store::default());
        one.apply(&batches).unwrap();
        let (first, second) = batches.split_at(cut.index(batches.len()));
        for part in [first, second] {
            other.apply(part).unwrap();
        }
        let mut highest = 0;
        for level in &levels {
            highest = highest.max(*level);
        }
        prop_assert_eq!(one.vars.level, highest);
        prop_assert_eq!(&one.vars, &other.vars);
        prop_assert_eq!(one.vars.revision, 1, "a level takes no revision");
    }
}
