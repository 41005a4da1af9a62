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

/// All calls.
pub const METHODS: [Method; 49] = [
    Method { path: "/etcdserverpb.KV/Range", gateway: &["/v3/kv/range"], client_streams: false, server_streams: false },
    Method { path: "/etcdserverpb.KV/RangeStream", gateway: &[], client_streams: false, server_streams: true },
    Method { path: "/etcdserverpb.KV/Put", gateway: &["/v3/kv/put"], client_streams: false, server_streams: false },
    Method {
        path: "/etcdserverpb.KV/DeleteRange",
        gateway: &["/v3/kv/deleterange"],
        client_streams: false,
        server_streams: false,
    },
    Method { path: "/etcdserverpb.KV/Txn", gateway: &["/v3/kv/txn"], client_streams: false, server_streams: false },
    Method {
        path: "/etcdserverpb.KV/Compact",
        gateway: &["/v3/kv/compaction"],
        client_streams: false,
        server_streams: false,
    },
    Method { path: "/etcdserverpb.Watch/Watch", gateway: &["/v3/watch"], client_streams: true, server_streams: true },
    Method {
        path: "/etcdserverpb.Lease/LeaseGrant",
        gateway: &["/v3/lease/grant"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Lease/LeaseRevoke",
        gateway: &["/v3/lease/revoke", "/v3/kv/lease/revoke"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Lease/LeaseKeepAlive",
        gateway: &["/v3/lease/keepalive"],
        client_streams: true,
        server_streams: true,
    },
    Method {
        path: "/etcdserverpb.Lease/LeaseTimeToLive",
        gateway: &["/v3/lease/timetolive", "/v3/kv/lease/timetolive"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Lease/LeaseLeases",
        gateway: &["/v3/lease/leases", "/v3/kv/lease/leases"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Cluster/MemberAdd",
        gateway: &["/v3/cluster/member/add"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Cluster/MemberRemove",
        gateway: &["/v3/cluster/member/remove"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Cluster/MemberUpdate",
        gateway: &["/v3/cluster/member/update"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Cluster/MemberList",
        gateway: &["/v3/cluster/member/list"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Cluster/MemberPromote",
        gateway: &["/v3/cluster/member/promote"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Maintenance/Alarm",
        gateway: &["/v3/maintenance/alarm"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Maintenance/Status",
        gateway: &["/v3/maintenance/status"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Maintenance/Defragment",
        gateway: &["/v3/maintenance/defragment"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Maintenance/Hash",
        gateway: &["/v3/maintenance/hash"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Maintenance/HashKV",
        gateway: &["/v3/maintenance/hashkv"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Maintenance/Snapshot",
        gateway: &["/v3/maintenance/snapshot"],
        client_streams: false,
        server_streams: true,
    },
    Method {
        path: "/etcdserverpb.Maintenance/MoveLeader",
        gateway: &["/v3/maintenance/transfer-leadership"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Maintenance/Downgrade",
        gateway: &["/v3/maintenance/downgrade"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/AuthEnable",
        gateway: &["/v3/auth/enable"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/AuthDisable",
        gateway: &["/v3/auth/disable"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/AuthStatus",
        gateway: &["/v3/auth/status"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/Authenticate",
        gateway: &["/v3/auth/authenticate"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/UserAdd",
        gateway: &["/v3/auth/user/add"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/UserGet",
        gateway: &["/v3/auth/user/get"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/UserList",
        gateway: &["/v3/auth/user/list"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/UserDelete",
        gateway: &["/v3/auth/user/delete"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/UserChangePassword",
        gateway: &["/v3/auth/user/changepw"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/UserGrantRole",
        gateway: &["/v3/auth/user/grant"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/UserRevokeRole",
        gateway: &["/v3/auth/user/revoke"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/RoleAdd",
        gateway: &["/v3/auth/role/add"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/RoleGet",
        gateway: &["/v3/auth/role/get"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/RoleList",
        gateway: &["/v3/auth/role/list"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/RoleDelete",
        gateway: &["/v3/auth/role/delete"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/RoleGrantPermission",
        gateway: &["/v3/auth/role/grant"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/etcdserverpb.Auth/RoleRevokePermission",
        gateway: &["/v3/auth/role/revoke"],
        client_streams: false,
        server_streams: false,
    },
    Method { path: "/v3lockpb.Lock/Lock", gateway: &["/v3/lock/lock"], client_streams: false, server_streams: false },
    Method {
        path: "/v3lockpb.Lock/Unlock",
        gateway: &["/v3/lock/unlock"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/v3electionpb.Election/Campaign",
        gateway: &["/v3/election/campaign"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/v3electionpb.Election/Proclaim",
        gateway: &["/v3/election/proclaim"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/v3electionpb.Election/Leader",
        gateway: &["/v3/election/leader"],
        client_streams: false,
        server_streams: false,
    },
    Method {
        path: "/v3electionpb.Election/Observe",
        gateway: &["/v3/election/observe"],
        client_streams: false,
        server_streams: true,
    },
    Method {
        path: "/v3electionpb.Election/Resign",
        gateway: &["/v3/election/resign"],
        client_streams: false,
        server_streams: false,
    },
];
