//! Users, roles and tokens in scripts: commands, rows as text, and the invariants between them.

use std::collections::{BTreeMap, BTreeSet};

use quorate_machine::access::{Grant, Permission};
use quorate_machine::codec;
use quorate_machine::keyspace::{access, family};
use quorate_machine::types::{
    AccessOp, Action, Command, NewToken, RequestId, RoleName, RoleRow, SecretHash, TokenId, TokenRow, UserName, UserRow,
};

use super::Store;

/// `user NAME ROLE…`, `unuser NAME`, `role NAME PERMISSION:PREFIX…`, `unrole NAME`, `token NUMBER USER [until=MS] [note=TEXT]`,
/// `untoken NUMBER`; each with `id=` and `by=`.
pub fn command(words: &[&str]) -> Command {
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let plain: Vec<&str> = words[2..].iter().copied().filter(|word| !word.contains('=')).collect();
    let id = || TokenId(words[1].parse().unwrap());
    let op = match words[0] {
        "user" => AccessOp::SetUser { name: user(words[1]), roles: plain.iter().map(|name| role(name)).collect() },
        "unuser" => AccessOp::RemoveUser(user(words[1])),
        "role" => AccessOp::SetRole { name: role(words[1]), grants: plain.iter().map(|text| grant(text)).collect() },
        "unrole" => AccessOp::RemoveRole(role(words[1])),
        "untoken" => AccessOp::RemoveToken(id()),
        _ => AccessOp::AddToken(NewToken {
            id: id(),
            user: user(plain[0]),
            hash: SecretHash([id().0 as u8; 32]),
            expires_at: option("until").map(|at| at.parse().unwrap()),
            note: option("note").unwrap_or_default().to_owned(),
        }),
    };
    Command {
        request_id: option("id").map(|id| RequestId(id.into())),
        principal: option("by").unwrap_or_default().to_owned(),
        action: Action::Access(op),
        stamp: None,
    }
}

pub fn user(name: &str) -> UserName {
    UserName::new(name).unwrap()
}

pub fn role(name: &str) -> RoleName {
    RoleName::new(name).unwrap()
}

/// `PERMISSION:PREFIX`.
pub fn grant(text: &str) -> Grant {
    let (permission, prefix) = text.split_once(':').unwrap();
    let permission = match permission {
        "read" => Permission::Read,
        "write" => Permission::Write,
        "lock" => Permission::Lock,
        "admin" => Permission::Admin,
        other => panic!("{other}"),
    };
    Grant { permission, prefix: prefix.into() }
}

/// A row of these families.
pub fn row(row_key: &[u8], value: &[u8]) -> String {
    match row_key[0] {
        family::USER => {
            let UserRow { roles, created, revision } = codec::decode(value).unwrap();
            let roles: Vec<_> = roles.iter().map(RoleName::as_str).collect();
            let name = access::decode_user(row_key).unwrap();
            format!("user {name} = [{}] created={created} r{revision}", roles.join(", "))
        }
        family::ROLE => {
            let RoleRow { grants, created, revision } = codec::decode(value).unwrap();
            let grant = |grant: &Grant| format!("{:?}:{}", grant.permission, grant.prefix.escape_ascii());
            let grants: Vec<_> = grants.iter().map(grant).collect();
            let name = access::decode_role(row_key).unwrap();
            format!("role {name} = [{}] created={created} r{revision}", grants.join(", "))
        }
        family::TOKEN => {
            let TokenRow { user, hash, expires_at, note, created, revision } = codec::decode(value).unwrap();
            let until = expires_at.map_or(String::new(), |at| format!(" until={at}"));
            let id = access::decode_token(row_key).unwrap();
            let hash = hash.0[0];
            format!("token {id} = {user} hash={hash:02x}..{until} note={note:?} created={created} r{revision}")
        }
        family::USER_TOKEN => {
            let (user, id) = access::decode_user_token(row_key).unwrap();
            assert!(value.is_empty());
            format!("tokenof {user} {id}")
        }
        _ => {
            let (role, user) = access::decode_role_user(row_key).unwrap();
            assert!(value.is_empty());
            format!("userof {role} {user}")
        }
    }
}

/// Every invariant between these rows.
pub fn check(store: &Store) {
    let rows = |family: u8| store.rows(family).into_iter();
    let users: BTreeMap<UserName, UserRow> = rows(family::USER)
        .map(|(row_key, row)| (access::decode_user(&row_key).unwrap(), codec::decode(&row).unwrap()))
        .collect();
    let roles: BTreeMap<RoleName, RoleRow> = rows(family::ROLE)
        .map(|(row_key, row)| (access::decode_role(&row_key).unwrap(), codec::decode(&row).unwrap()))
        .collect();
    let tokens: BTreeMap<TokenId, TokenRow> = rows(family::TOKEN)
        .map(|(row_key, row)| (access::decode_token(&row_key).unwrap(), codec::decode(&row).unwrap()))
        .collect();
    let expected: BTreeSet<_> =
        users.iter().flat_map(|(name, row)| row.roles.iter().map(|role| (role.clone(), name.clone()))).collect();
    assert!(expected.iter().all(|(role, _)| roles.contains_key(role)), "a role is missing: {users:?}");
    let by_role: BTreeSet<_> =
        rows(family::ROLE_USER).map(|(key, _)| access::decode_role_user(&key).unwrap()).collect();
    assert_eq!(by_role, expected);
    let expected: BTreeSet<_> = tokens.iter().map(|(id, row)| (row.user.clone(), *id)).collect();
    assert!(expected.iter().all(|(user, _)| users.contains_key(user)), "a user is missing: {tokens:?}");
    let by_user: BTreeSet<_> =
        rows(family::USER_TOKEN).map(|(key, _)| access::decode_user_token(&key).unwrap()).collect();
    assert_eq!(by_user, expected);
    let set = users.values().map(|row| row.revision).chain(roles.values().map(|row| row.revision));
    let last = set.chain(tokens.values().map(|row| row.revision)).max().unwrap_or(0);
    assert!(last <= store.vars.access && store.vars.access <= store.vars.revision, "{:?}", store.vars);
    let in_order = |row: &UserRow| row.roles.is_sorted_by(|a, b| a < b);
    assert!(users.values().all(in_order) && roles.values().all(|row| row.grants.is_sorted_by(|a, b| a < b)));
}
