//! Users, roles and tokens in scripts: commands, and rows as text.

use quorate_machine::access::{Grant, Permission};
use quorate_machine::codec;
use quorate_machine::keyspace::{access, family};
use quorate_machine::types::{AccessOp, NewToken, RoleName, RoleRow, SecretHash, TokenId, TokenRow, UserName, UserRow};

/// `user NAME ROLE…`, `unuser NAME`, `role NAME PERMISSION:PREFIX…`, `unrole NAME`, `token NUMBER USER [until=MS] [note=TEXT]`,
/// `untoken NUMBER`.
pub fn op(words: &[&str]) -> AccessOp {
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let plain: Vec<&str> = words[2..].iter().copied().filter(|word| !word.contains('=')).collect();
    let id = || TokenId(words[1].parse().unwrap());
    match words[0] {
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
        "backup" => Permission::Backup,
        "monitor" => Permission::Monitor,
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
