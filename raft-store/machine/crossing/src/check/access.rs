//! Invariants between the rows of users, roles and tokens.

use std::collections::{BTreeMap, BTreeSet};

use quorate_machine::codec;
use quorate_machine::keyspace::{access, family};
use quorate_machine::types::{RoleName, RoleRow, TokenId, TokenRow, UserName, UserRow};

use crate::store::Store;

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
