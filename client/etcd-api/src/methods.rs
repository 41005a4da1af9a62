//! Every call: its path over gRPC, those of the JSON gateway, and which side streams.

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// Its path over gRPC.
    pub path: &'static str,
    /// Its paths in the JSON gateway, all of them POST; none where it has no place there.
    pub gateway: &'static [&'static str],
    /// Whether the client sends a stream.
    pub client_streams: bool,
    /// Whether the server answers with one.
    pub server_streams: bool,
}

/// A call with one message each way.
const fn unary(path: &'static str, gateway: &'static [&'static str]) -> Method {
    Method { path, gateway, client_streams: false, server_streams: false }
}

/// A call with one message that is answered with a stream.
const fn answered_with_a_stream(path: &'static str, gateway: &'static [&'static str]) -> Method {
    Method { server_streams: true, ..unary(path, gateway) }
}

/// A call with a stream each way.
const fn streams(path: &'static str, gateway: &'static [&'static str]) -> Method {
    Method { client_streams: true, server_streams: true, ..unary(path, gateway) }
}

/// All calls.
pub const METHODS: [Method; 49] = [
    unary("/etcdserverpb.KV/Range", &["/v3/kv/range"]),
    answered_with_a_stream("/etcdserverpb.KV/RangeStream", &[]),
    unary("/etcdserverpb.KV/Put", &["/v3/kv/put"]),
    unary("/etcdserverpb.KV/DeleteRange", &["/v3/kv/deleterange"]),
    unary("/etcdserverpb.KV/Txn", &["/v3/kv/txn"]),
    unary("/etcdserverpb.KV/Compact", &["/v3/kv/compaction"]),
    streams("/etcdserverpb.Watch/Watch", &["/v3/watch"]),
    unary("/etcdserverpb.Lease/LeaseGrant", &["/v3/lease/grant"]),
    unary("/etcdserverpb.Lease/LeaseRevoke", &["/v3/lease/revoke", "/v3/kv/lease/revoke"]),
    streams("/etcdserverpb.Lease/LeaseKeepAlive", &["/v3/lease/keepalive"]),
    unary("/etcdserverpb.Lease/LeaseTimeToLive", &["/v3/lease/timetolive", "/v3/kv/lease/timetolive"]),
    unary("/etcdserverpb.Lease/LeaseLeases", &["/v3/lease/leases", "/v3/kv/lease/leases"]),
    unary("/etcdserverpb.Cluster/MemberAdd", &["/v3/cluster/member/add"]),
    unary("/etcdserverpb.Cluster/MemberRemove", &["/v3/cluster/member/remove"]),
    unary("/etcdserverpb.Cluster/MemberUpdate", &["/v3/cluster/member/update"]),
    unary("/etcdserverpb.Cluster/MemberList", &["/v3/cluster/member/list"]),
    unary("/etcdserverpb.Cluster/MemberPromote", &["/v3/cluster/member/promote"]),
    unary("/etcdserverpb.Maintenance/Alarm", &["/v3/maintenance/alarm"]),
    unary("/etcdserverpb.Maintenance/Status", &["/v3/maintenance/status"]),
    unary("/etcdserverpb.Maintenance/Defragment", &["/v3/maintenance/defragment"]),
    unary("/etcdserverpb.Maintenance/Hash", &["/v3/maintenance/hash"]),
    unary("/etcdserverpb.Maintenance/HashKV", &["/v3/maintenance/hashkv"]),
    answered_with_a_stream("/etcdserverpb.Maintenance/Snapshot", &["/v3/maintenance/snapshot"]),
    unary("/etcdserverpb.Maintenance/MoveLeader", &["/v3/maintenance/transfer-leadership"]),
    unary("/etcdserverpb.Maintenance/Downgrade", &["/v3/maintenance/downgrade"]),
    unary("/etcdserverpb.Auth/AuthEnable", &["/v3/auth/enable"]),
    unary("/etcdserverpb.Auth/AuthDisable", &["/v3/auth/disable"]),
    unary("/etcdserverpb.Auth/AuthStatus", &["/v3/auth/status"]),
    unary("/etcdserverpb.Auth/Authenticate", &["/v3/auth/authenticate"]),
    unary("/etcdserverpb.Auth/UserAdd", &["/v3/auth/user/add"]),
    unary("/etcdserverpb.Auth/UserGet", &["/v3/auth/user/get"]),
    unary("/etcdserverpb.Auth/UserList", &["/v3/auth/user/list"]),
    unary("/etcdserverpb.Auth/UserDelete", &["/v3/auth/user/delete"]),
    unary("/etcdserverpb.Auth/UserChangePassword", &["/v3/auth/user/changepw"]),
    unary("/etcdserverpb.Auth/UserGrantRole", &["/v3/auth/user/grant"]),
    unary("/etcdserverpb.Auth/UserRevokeRole", &["/v3/auth/user/revoke"]),
    unary("/etcdserverpb.Auth/RoleAdd", &["/v3/auth/role/add"]),
    unary("/etcdserverpb.Auth/RoleGet", &["/v3/auth/role/get"]),
    unary("/etcdserverpb.Auth/RoleList", &["/v3/auth/role/list"]),
    unary("/etcdserverpb.Auth/RoleDelete", &["/v3/auth/role/delete"]),
    unary("/etcdserverpb.Auth/RoleGrantPermission", &["/v3/auth/role/grant"]),
    unary("/etcdserverpb.Auth/RoleRevokePermission", &["/v3/auth/role/revoke"]),
    unary("/v3lockpb.Lock/Lock", &["/v3/lock/lock"]),
    unary("/v3lockpb.Lock/Unlock", &["/v3/lock/unlock"]),
    unary("/v3electionpb.Election/Campaign", &["/v3/election/campaign"]),
    unary("/v3electionpb.Election/Proclaim", &["/v3/election/proclaim"]),
    unary("/v3electionpb.Election/Leader", &["/v3/election/leader"]),
    answered_with_a_stream("/v3electionpb.Election/Observe", &["/v3/election/observe"]),
    unary("/v3electionpb.Election/Resign", &["/v3/election/resign"]),
];
