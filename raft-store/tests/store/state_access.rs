//! Rights and the access revision as readers see them, also after a restart.

use std::time::Duration;

use quorate_machine::access::{Grant, Permission, RequiredPermission};
use quorate_machine::types::{
    AccessOp, Action, Command, Outcome, Rejection, RequestId, RoleName, SessionId, SessionOp, UserName, Waker,
};
use quorate_store::state::StateReader;

use crate::state_support::*;

fn user(name: &str) -> UserName {
    UserName::new(name).unwrap()
}

fn role(name: &str) -> RoleName {
    RoleName::new(name).unwrap()
}

fn set_user(name: &str, roles: &[&str]) -> Command {
    let roles = roles.iter().map(|name| role(name)).collect();
    Command::unnamed(Action::Access(AccessOp::SetUser { name: user(name), roles }))
}

fn set_role(name: &str, grants: &[(Permission, &str)]) -> Command {
    let grants = grants.iter().map(|(permission, prefix)| Grant { permission: *permission, prefix: (*prefix).into() });
    Command::unnamed(Action::Access(AccessOp::SetRole { name: role(name), grants: grants.collect() }))
}

fn may(reader: &StateReader, name: &str, permission: Permission, key: &str) -> Option<bool> {
    let rights = reader.rights_of(&user(name)).unwrap()?;
    Some(rights.allow(&RequiredPermission::Name(permission, key.as_bytes())))
}

#[test]
fn rights_are_those_of_all_roles_together_and_follow_every_change() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    assert_eq!(reader.access_revision(), 0);
    runtime().block_on(async {
        let commands = [
            set_role("o", &[(Permission::Write, "orders/"), (Permission::Read, "stock/")]),
            set_role("j", &[(Permission::Lock, "jobs/")]),
            set_user("ann", &["o", "j"]),
            set_user("bob", &[]),
            put("k", "1"),
        ];
        apply(&mut state, vec![blank(0), batch(1, 0, &commands)]).await;
        assert_eq!((reader.access_revision(), reader.position().revision), (5, 6), "entries do not move it");
        assert_eq!(may(&reader, "ann", Permission::Write, "orders/1"), Some(true));
        assert_eq!(may(&reader, "ann", Permission::Lock, "jobs/1"), Some(true));
        assert_eq!(may(&reader, "ann", Permission::Write, "stock/1"), Some(false));
        assert_eq!(may(&reader, "bob", Permission::Read, "stock/1"), Some(false));
        assert_eq!(may(&reader, "cid", Permission::Read, "stock/1"), None);

        // Who waits for news of access is woken, and finds them applied.
        let name = Waker::Access.of("");
        let woken = reader.wait_woken(&name, Duration::from_secs(30), || Ok(false));
        let changed = apply(&mut state, vec![batch(2, 10, &[set_role("o", &[(Permission::Read, "")])])]);
        tokio::join!(async { woken.await.unwrap() }, changed);
        assert_eq!(reader.access_revision(), 7);
        assert_eq!(may(&reader, "ann", Permission::Write, "orders/1"), Some(false));
        assert_eq!(may(&reader, "ann", Permission::Read, "anything"), Some(true));
    });
    drop((state, reader));
    let (_state, reader) = open(dir.path());
    assert!([0, 7].contains(&reader.access_revision()), "what was not flushed is applied again from the log");
}

#[test]
fn outcomes_and_sessions_say_whose_they_are_and_what_was_not_decided_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (mut state, reader) = open(dir.path());
    let by = |id: &str, access_revision, action| Command {
        request_id: Some(RequestId(id.into())),
        principal: "ann".into(),
        action,
        access_revision: Some(access_revision),
    };
    let session = || Action::Session(SessionOp::Create { ttl_ms: 1_000, owner: "o".into(), labels: Vec::new() });
    runtime().block_on(async {
        let commands = [set_user("ann", &[]), by("old", 0, session()), by("new", 2, session())];
        apply(&mut state, vec![blank(0), batch(1, 0, &commands)]).await;
    });
    let kept = |id: &str| reader.request("ann", &RequestId(id.into())).unwrap().1;
    assert_eq!(kept("old"), None);
    assert!(kept("new").is_some());
    assert_eq!(reader.request("bob", &RequestId("new".into())).unwrap().1, None);
    let held = reader.session(SessionId(3), 0).unwrap().found.expect("a session");
    assert_eq!(held.row.principal, "ann");
    let stale = reader.dry_run(&by("other", 0, session()), 0).unwrap();
    assert_eq!(stale.outcome, Outcome::Rejected(Rejection::AccessChanged));
}
