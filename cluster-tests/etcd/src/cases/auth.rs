//! Users, roles and permissions.

use serde_json::{Value, json};

use super::cases;
use crate::case::Case;

cases! { status_while_it_is_off, a_life }

/// Makes calls of the service, one after the other.
async fn calls(case: &mut Case, calls: &[(&'static str, Value)]) {
    for (name, request) in calls {
        case.call(name, request.clone()).await;
    }
}

async fn status_while_it_is_off(case: &mut Case) {
    calls(
        case,
        &[
            ("Auth/AuthStatus", json!({})),
            ("Auth/AuthDisable", json!({})),
            ("Auth/Authenticate", json!({ "name": "root", "password": "pw" })),
            ("Auth/Authenticate", json!({})),
            ("Auth/UserList", json!({})),
            ("Auth/RoleList", json!({})),
        ],
    )
    .await;
    // A token is not looked at.
    case.etcd.token = Some("nonsense".to_owned());
    case.get("a").await;
    case.etcd.token = None;
}

fn permission(role: &str, kind: &str, key: &str, end: &str) -> (&'static str, Value) {
    ("Auth/RoleGrantPermission", json!({ "name": role, "perm": { "permType": kind, "key": key, "range_end": end } }))
}

async fn as_user(case: &mut Case, name: &str, password: &str) {
    case.etcd.token = None;
    let answer = case.call("Auth/Authenticate", json!({ "name": name, "password": password })).await;
    case.etcd.token = answer.get("token").and_then(Value::as_str).map(str::to_owned);
}

async fn watch(case: &mut Case, key: &str, end: &str) {
    let mut watch = case.open("Watch/Watch").await;
    watch.send(case, json!({ "create_request": { "key": key, "range_end": end } }));
    watch.receive(case).await;
}

async fn keep_alive(case: &mut Case, lease: i64) {
    let mut stream = case.open("Lease/LeaseKeepAlive").await;
    stream.send(case, json!({ "ID": lease }));
    stream.receive(case).await;
}

/// From the first user to the end of authentication. All calls of one cluster are under it meanwhile, so it is one case.
async fn a_life(case: &mut Case) {
    case.put("secret", "1").await;
    calls(
        case,
        &[
            ("Auth/UserAdd", json!({ "name": "root", "password": "root-pw" })),
            ("Auth/RoleAdd", json!({ "name": "root" })),
            ("Auth/UserGrantRole", json!({ "user": "root", "role": "root" })),
            ("Auth/UserAdd", json!({ "name": "alice", "password": "alice-pw" })),
            ("Auth/UserAdd", json!({ "name": "idle", "password": "idle-pw" })),
            ("Auth/UserAdd", json!({ "name": "cert", "options": { "no_password": true } })),
            ("Auth/RoleAdd", json!({ "name": "app" })),
            permission("app", "READWRITE", "app/", "app0"),
            permission("app", "READ", "read", ""),
            permission("app", "WRITE", "write", ""),
            ("Auth/UserGrantRole", json!({ "user": "alice", "role": "app" })),
        ],
    )
    .await;
    let enabled = case.call("Auth/AuthEnable", json!({})).await;
    if enabled.get("error").is_some() {
        return;
    }
    case.call("Auth/AuthEnable", json!({})).await;
    nobody(case).await;
    refused_authentications(case).await;
    alice(case).await;
    changes_of_alice(case).await;
    root(case).await;
    case.call("Auth/AuthDisable", json!({})).await;
    case.call("Auth/AuthStatus", json!({})).await;
    case.etcd.token = None;
    case.get("secret").await;
}

/// Without a token, and with one that is none.
async fn nobody(case: &mut Case) {
    for token in [None, Some("nonsense"), Some("nonsense.5")] {
        case.etcd.token = token.map(str::to_owned);
        case.get("secret").await;
        case.put("app/1", "1").await;
        calls(
            case,
            &[
                ("KV/Txn", json!({})),
                ("KV/Compact", json!({ "revision": 1 })),
                ("Lease/LeaseGrant", json!({ "TTL": 60 })),
                ("Lease/LeaseLeases", json!({})),
                ("Lease/LeaseTimeToLive", json!({ "ID": 12_345 })),
                ("Auth/AuthStatus", json!({})),
                ("Auth/UserList", json!({})),
                ("Maintenance/Alarm", json!({})),
                ("Maintenance/HashKV", json!({})),
            ],
        )
        .await;
        watch(case, "app/", "app0").await;
        keep_alive(case, 12_345).await;
    }
}

async fn refused_authentications(case: &mut Case) {
    for (name, password) in
        [("alice", "wrong"), ("alice", ""), ("nobody", "pw"), ("", ""), ("cert", ""), ("cert", "pw")]
    {
        as_user(case, name, password).await;
    }
}

async fn alice(case: &mut Case) {
    as_user(case, "alice", "alice-pw").await;
    case.put("app/1", "1").await;
    case.get("app/1").await;
    for key in ["read", "write", "secret", "app"] {
        case.get(key).await;
        case.put(key, "2").await;
        case.delete(key).await;
    }
    let txn = |compare: &str, read: &str, write: &str| {
        json!({
            "compare": [{ "key": compare, "target": "VERSION", "version": 0 }],
            "success": [{ "request_range": { "key": read } }],
            "failure": [{ "request_txn": { "success": [{ "request_put": { "key": write, "value": "1" } }] } }],
        })
    };
    calls(
        case,
        &[
            ("KV/Range", json!({ "key": "app/", "range_end": "app0" })),
            ("KV/Range", json!({ "key": "app/1", "range_end": "app/2" })),
            ("KV/Range", json!({ "key": "app", "range_end": "app0" })),
            ("KV/Range", json!({ "key": "app/", "range_end": "\0" })),
            ("KV/Range", json!({ "key": "\0", "range_end": "\0" })),
            ("KV/Range", json!({ "key": "" })),
            ("KV/Put", json!({ "key": "write", "value": "1", "prev_kv": true })),
            ("KV/Put", json!({ "key": "write", "ignore_value": true })),
            ("KV/DeleteRange", json!({ "key": "write", "prev_kv": true })),
            ("KV/DeleteRange", json!({ "key": "app/", "range_end": "z" })),
            ("KV/Txn", txn("app/1", "app/1", "app/2")),
            ("KV/Txn", txn("secret", "app/1", "app/2")),
            ("KV/Txn", txn("app/1", "secret", "app/2")),
            ("KV/Txn", txn("app/1", "app/1", "secret")),
            ("KV/Txn", txn("write", "app/1", "app/2")),
            ("KV/Compact", json!({ "revision": 1 })),
        ],
    )
    .await;
    let lease = case.grant(60).await;
    calls(
        case,
        &[
            ("KV/Put", json!({ "key": "app/1", "value": "2", "lease": lease })),
            ("Lease/LeaseTimeToLive", json!({ "ID": lease, "keys": true })),
            ("Lease/LeaseLeases", json!({})),
        ],
    )
    .await;
    keep_alive(case, lease).await;
    case.call("Lease/LeaseRevoke", json!({ "ID": lease })).await;
    for (key, end) in [("app/", "app0"), ("read", ""), ("write", ""), ("secret", ""), ("\0", "\0")] {
        watch(case, key, end).await;
    }
    calls(
        case,
        &[
            ("Auth/AuthStatus", json!({})),
            ("Auth/AuthDisable", json!({})),
            ("Auth/UserList", json!({})),
            ("Auth/UserGet", json!({ "name": "alice" })),
            ("Auth/UserGet", json!({ "name": "root" })),
            ("Auth/UserAdd", json!({ "name": "more", "password": "pw" })),
            ("Auth/UserChangePassword", json!({ "name": "alice", "password": "new" })),
            ("Auth/UserDelete", json!({ "name": "idle" })),
            ("Auth/UserGrantRole", json!({ "user": "alice", "role": "root" })),
            ("Auth/UserRevokeRole", json!({ "name": "alice", "role": "app" })),
            ("Auth/RoleList", json!({})),
            ("Auth/RoleGet", json!({ "role": "app" })),
            ("Auth/RoleGet", json!({ "role": "root" })),
            ("Auth/RoleAdd", json!({ "name": "more" })),
            ("Auth/RoleDelete", json!({ "role": "app" })),
            permission("app", "READ", "secret", ""),
            ("Auth/RoleRevokePermission", json!({ "role": "app", "key": "read" })),
            ("Cluster/MemberList", json!({ "linearizable": true })),
            ("Cluster/MemberRemove", json!({ "ID": 12_345 })),
            ("Maintenance/Status", json!({})),
            ("Maintenance/Alarm", json!({})),
            ("Maintenance/Defragment", json!({})),
            ("Maintenance/Hash", json!({})),
            ("Maintenance/HashKV", json!({})),
            ("Maintenance/MoveLeader", json!({ "targetID": 12_345 })),
        ],
    )
    .await;
    let mut snapshot = case.open("Maintenance/Snapshot").await;
    snapshot.send(case, json!({}));
    snapshot.receive(case).await;
    case.post("/v3/kv/range", json!({ "key": "YXBwLzE=" })).await;
    case.post("/v3/kv/range", json!({ "key": "c2VjcmV0" })).await;
}

/// What becomes of a token when what its user may do changes.
async fn changes_of_alice(case: &mut Case) {
    let token = case.etcd.token.clone();
    for (call, request) in [
        permission("app", "READ", "secret", ""),
        ("Auth/RoleRevokePermission", json!({ "role": "app", "key": "secret" })),
        ("Auth/UserRevokeRole", json!({ "name": "alice", "role": "app" })),
        ("Auth/UserGrantRole", json!({ "user": "alice", "role": "app" })),
        ("Auth/UserChangePassword", json!({ "name": "alice", "password": "new-pw" })),
    ] {
        as_user(case, "root", "root-pw").await;
        case.call(call, request).await;
        case.etcd.token.clone_from(&token);
        case.get("app/1").await;
        case.get("secret").await;
    }
    as_user(case, "alice", "alice-pw").await;
    as_user(case, "alice", "new-pw").await;
    case.get("app/1").await;
    let token = case.etcd.token.clone();
    as_user(case, "root", "root-pw").await;
    case.call("Auth/UserDelete", json!({ "name": "alice" })).await;
    case.etcd.token = token;
    case.get("app/1").await;
    as_user(case, "alice", "new-pw").await;
}

async fn root(case: &mut Case) {
    as_user(case, "root", "root-pw").await;
    case.put("secret", "root").await;
    calls(
        case,
        &[
            ("KV/Range", json!({ "key": "\0", "range_end": "\0" })),
            ("Auth/AuthStatus", json!({})),
            ("Auth/UserList", json!({})),
            ("Auth/RoleList", json!({})),
            ("Auth/UserDelete", json!({ "name": "root" })),
            ("Auth/RoleDelete", json!({ "role": "root" })),
            ("Auth/UserRevokeRole", json!({ "name": "root", "role": "root" })),
            ("Maintenance/Alarm", json!({})),
        ],
    )
    .await;
    watch(case, "\0", "\0").await;
}
