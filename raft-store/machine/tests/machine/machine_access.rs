//! What must hold of users, roles, tokens and access_revisions under any sequence of commands, held against a model. That their rows agree
//! with one another is among what the store checks of itself.
//!
//! The seed of a failure is printed by proptest; `PROPTEST_CASES` sets how many are tried.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine_support::access::{role, user};
use crate::machine_support::bounds::put;
use crate::machine_support::{Store, batch};
use proptest::prelude::*;
use quorate_machine::access::{Grant, Permission};
use quorate_machine::keyspace::family;
use quorate_machine::limits;
use quorate_machine::types::*;

/// Milliseconds between batches.
const STEP: u64 = 100;

/// What should be.
#[derive(Default)]
struct Model {
    users: BTreeMap<UserName, BTreeSet<RoleName>>,
    roles: BTreeMap<RoleName, BTreeSet<Grant>>,
    tokens: BTreeMap<TokenId, (UserName, Option<WallMillis>)>,
}

impl Model {
    /// Whether the operation changes something, or why it is refused.
    fn apply(&mut self, op: &AccessOp, wall: WallMillis) -> Result<bool, AccessFault> {
        match op {
            AccessOp::SetUser { name, roles } => {
                if let Some(missing) =
                    roles.iter().collect::<BTreeSet<_>>().into_iter().find(|r| !self.roles.contains_key(r))
                {
                    return Err(AccessFault::NoRole(missing.clone()));
                }
                let roles: BTreeSet<_> = roles.iter().cloned().collect();
                Ok(self.users.insert(name.clone(), roles.clone()) != Some(roles))
            }
            AccessOp::RemoveUser(name) => {
                self.users.remove(name).ok_or_else(|| AccessFault::NoUser(name.clone()))?;
                self.tokens.retain(|_, (user, _)| user != name);
                Ok(true)
            }
            AccessOp::SetRole { name, grants } => {
                let grants: BTreeSet<_> = grants.iter().cloned().collect();
                Ok(self.roles.insert(name.clone(), grants.clone()) != Some(grants))
            }
            AccessOp::RemoveRole(name) if !self.roles.contains_key(name) => Err(AccessFault::NoRole(name.clone())),
            AccessOp::RemoveRole(name) => match self.users.iter().find(|(_, roles)| roles.contains(name)) {
                Some((user, _)) => Err(AccessFault::RoleInUse(user.clone())),
                None => Ok(self.roles.remove(name).is_some()),
            },
            AccessOp::AddToken(new) if !self.users.contains_key(&new.user) => {
                Err(AccessFault::NoUser(new.user.clone()))
            }
            AccessOp::AddToken(new) if self.tokens.contains_key(&new.id) => Err(AccessFault::TokenExists),
            AccessOp::AddToken(new) => {
                self.tokens.retain(|_, (user, end)| *user != new.user || end.is_none_or(|end| end > wall));
                Ok(self.tokens.insert(new.id, (new.user.clone(), new.expires_at)).is_none())
            }
            AccessOp::RemoveToken(id) => self.tokens.remove(id).map(|_| true).ok_or(AccessFault::NoToken(*id)),
        }
    }
}

fn ops() -> impl Strategy<Value = AccessOp> {
    let user = || prop::sample::select(vec!["a", "a\0", "ab"]).prop_map(user);
    let role = || prop::sample::select(vec!["r", "r\0", "s"]).prop_map(role);
    let id = || (0..6_u64).prop_map(TokenId);
    let permission = || prop::sample::select(vec![Permission::Read, Permission::Write, Permission::Admin]);
    let grant = (permission(), "[xy]?").prop_map(|(permission, prefix)| Grant { permission, prefix: prefix.into() });
    let expires_at = prop_oneof![Just(None), (0..20 * STEP).prop_map(|at| Some(1_000_000 + at))];
    let token = (id(), user(), expires_at).prop_map(|(id, user, expires_at)| NewToken {
        id,
        user,
        hash: SecretHash([1; 32]),
        expires_at,
        note: String::new(),
    });
    prop_oneof![
        3 => (user(), prop::collection::vec(role(), 0..3)).prop_map(|(name, roles)| AccessOp::SetUser { name, roles }),
        1 => user().prop_map(AccessOp::RemoveUser),
        3 => (role(), prop::collection::vec(grant, 0..3)).prop_map(|(name, grants)| AccessOp::SetRole { name, grants }),
        1 => role().prop_map(AccessOp::RemoveRole),
        4 => token.prop_map(AccessOp::AddToken),
        1 => id().prop_map(AccessOp::RemoveToken),
    ]
}

/// A command, and how many changes of access ago it was authorised; `None` where nobody asked for that.
fn commands() -> impl Strategy<Value = (Action, Option<usize>)> {
    let action = prop_oneof![4 => ops().prop_map(Action::Access), 1 => Just(put("k", vec![1], None).action)];
    (action, prop_oneof![Just(None), Just(Some(0)), Just(Some(0)), (1..3_usize).prop_map(Some)])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_set_is_what_the_model_says_and_old_access_revisions_change_nothing(
        all in prop::collection::vec(prop::collection::vec(commands(), 1..4), 1..20)
    ) {
        let (mut store, mut model) = (Store::default(), Model::default());
        // Access revisions so far, the present one last.
        let mut access_revisions = vec![0];
        for (at, commands) in all.into_iter().enumerate() {
            let clock = at as u64 * STEP;
            for (action, ago) in commands {
                let access_revision = ago.map(|ago| access_revisions[access_revisions.len().saturating_sub(ago + 1)]);
                let (present, before) = (*access_revisions.last().unwrap(), store.clone());
                let command = Command { request_id: None, principal: "p".into(), action: action.clone(), access_revision };
                let batch = batch(clock, &[command]);
                let wall = batch.wall;
                let (replies, _) = store.apply(&[batch]).unwrap();
                store.check();
                let reply = &replies[0][0];
                if access_revision.is_some_and(|access_revision| access_revision != present) {
                    prop_assert_eq!(&reply.outcome, &Outcome::Rejected(Rejection::AccessChanged));
                    prop_assert_eq!((&store.view, store.vars.revision), (&before.view, before.vars.revision));
                    continue;
                }
                let Action::Access(op) = action else {
                    prop_assert!(matches!(reply.outcome, Outcome::Written(_)), "{:?}", reply);
                    prop_assert_eq!(store.vars.access, present);
                    continue;
                };
                match model.apply(&op, wall) {
                    Ok(changes) => {
                        prop_assert!(matches!(reply.outcome, Outcome::Access(_)), "{:?} gave {:?}", op, reply);
                        prop_assert_eq!(store.vars.access != present, changes, "{:?}", op);
                        prop_assert_eq!(store.vars.revision, before.vars.revision + u64::from(changes));
                        if changes {
                            prop_assert_eq!(store.vars.access, store.vars.revision);
                            access_revisions.push(store.vars.access);
                        }
                    }
                    Err(fault) => {
                        prop_assert_eq!(&reply.outcome, &Outcome::Rejected(Rejection::Access(Box::new(fault))));
                        prop_assert_eq!(store.vars.access, present);
                    }
                }
                let counts = [family::USER, family::ROLE, family::TOKEN].map(|family| store.rows(family).len());
                prop_assert_eq!(counts, [model.users.len(), model.roles.len(), model.tokens.len()]);
            }
        }
        store.begin_epoch();
        prop_assert_eq!(store.vars.access > 0, access_revisions.len() > 1);
    }
}

fn apply(store: &mut Store, op: AccessOp) -> Outcome {
    let command = Command::unnamed(Action::Access(op));
    let (replies, _) = store.apply(&[batch(store.vars.clock, &[command])]).unwrap();
    replies[0][0].outcome.clone()
}

#[test]
fn there_is_an_end_to_roles_grants_tokens_and_notes() {
    let mut store = Store::default();
    let roles: Vec<_> = (0..=limits::USER_ROLES_MAX).map(|n| role(&n.to_string())).collect();
    for name in &roles {
        apply(&mut store, AccessOp::SetRole { name: name.clone(), grants: Vec::new() });
    }
    let set = |roles: &[RoleName]| AccessOp::SetUser { name: user("a"), roles: roles.to_vec() };
    let full = |outcome: &Outcome| matches!(outcome, Outcome::Rejected(Rejection::TooMany { .. }));
    assert!(full(&apply(&mut store, set(&roles))));
    assert!(matches!(apply(&mut store, set(&roles[1..])), Outcome::Access(_)));

    let grants: Vec<_> = (0..=limits::ROLE_GRANTS_MAX)
        .map(|n| Grant { permission: Permission::Read, prefix: n.to_string().into_bytes() })
        .collect();
    let set = |grants: &[Grant]| AccessOp::SetRole { name: role("0"), grants: grants.to_vec() };
    assert!(full(&apply(&mut store, set(&grants))));
    assert!(matches!(apply(&mut store, set(&grants[1..])), Outcome::Access(_)));
    let long = Grant { permission: Permission::Read, prefix: vec![b'p'; limits::KEY_BYTES_MAX + 1] };
    assert!(matches!(apply(&mut store, set(&[long])), Outcome::Rejected(Rejection::Unsupported(_))));

    let token = |id: u64, note: usize| {
        let (hash, note) = (SecretHash([0; 32]), "n".repeat(note));
        AccessOp::AddToken(NewToken { id: TokenId(id), user: user("a"), hash, expires_at: None, note })
    };
    let noted = apply(&mut store, token(0, limits::TOKEN_NOTE_BYTES_MAX + 1));
    assert!(matches!(noted, Outcome::Rejected(Rejection::Unsupported(_))), "{noted:?}");
    // One whose time is over does not count, and makes room for the next.
    let AccessOp::AddToken(brief) = token(u64::MAX - 1, 0) else { unreachable!("a token is added") };
    let over = AccessOp::AddToken(NewToken { expires_at: Some(0), ..brief });
    assert!(matches!(apply(&mut store, over), Outcome::Access(_)));
    for id in 0..limits::USER_TOKENS_MAX as u64 {
        assert!(matches!(apply(&mut store, token(id, limits::TOKEN_NOTE_BYTES_MAX)), Outcome::Access(_)));
    }
    assert!(full(&apply(&mut store, token(u64::MAX, 0))));
    let gone = apply(&mut store, AccessOp::RemoveUser(user("a")));
    assert_eq!(gone, Outcome::Access(Box::new(AccessReply::Removed { tokens: limits::USER_TOKENS_MAX as u32 })));
    store.check();
}
