//! Requests and answers of every call, from JSON and to it.
//!
//! Owns the text form of bytes: a key is written as text in a case, and read as text in a transcript.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use quorate_etcd_api::{METHODS, Message, auth, cluster, election, kv, lease, lock, maintenance, watch};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How one call is written and read.
#[derive(Clone, Copy)]
pub struct Form {
    /// Its path over gRPC.
    pub path: &'static str,
    encode: fn(Value) -> (Vec<u8>, Value),
    decode: fn(Bytes) -> Value,
}

impl Form {
    /// The form of a call by its short name: `KV/Range`.
    pub fn of(call: &str) -> Self {
        let method = METHODS.iter().find(|method| method.path.split_once('.').is_some_and(|(_, name)| name == call));
        let path = method.unwrap_or_else(|| panic!("there is no call {call}")).path;
        let (_, encode, decode) =
            *FORMS.iter().find(|(name, ..)| *name == call).unwrap_or_else(|| panic!("{call} has no form"));
        Self { path, encode, decode }
    }

    /// The form of the call at a path over gRPC; `None` where no case calls it.
    pub fn at(path: &str) -> Option<Self> {
        let (_, call) = path.split_once('.')?;
        FORMS.iter().any(|(name, ..)| *name == call).then(|| Self::of(call))
    }

    /// A request as it goes over the wire, and as it was understood.
    pub fn encode(&self, request: Value) -> (Vec<u8>, Value) {
        let (bytes, understood) = (self.encode)(self.to_gateway(request));
        (bytes, self.readable(understood))
    }

    /// A request as the JSON gateway takes it.
    pub fn to_gateway(&self, request: Value) -> Value {
        map_bytes(request, self.names_are_bytes(), &to_base64)
    }

    /// An answer.
    pub fn decode(&self, answer: Bytes) -> Value {
        self.readable((self.decode)(answer))
    }

    fn readable(&self, message: Value) -> Value {
        map_bytes(message, self.names_are_bytes(), &to_text)
    }

    /// Names of locks and elections are bytes, others are not.
    fn names_are_bytes(&self) -> bool {
        self.path.starts_with("/v3lockpb") || self.path.starts_with("/v3electionpb")
    }
}

fn encode<Q: Message + Serialize + DeserializeOwned>(request: Value) -> (Vec<u8>, Value) {
    let message: Q = serde_json::from_value(request.clone()).unwrap_or_else(|error| panic!("{error} in {request}"));
    (message.encode_to_vec(), serde_json::to_value(&message).expect("a message is JSON"))
}

/// An answer with fields that we do not know says so.
fn decode<A: Message + Default + Serialize>(answer: Bytes) -> Value {
    let length = answer.len();
    let message = match A::decode(answer) {
        Ok(message) => message,
        Err(error) => return json!({ "not the message": error.to_string() }),
    };
    let mut value = serde_json::to_value(&message).expect("a message is JSON");
    if message.encoded_len() != length {
        value["fields that are not known"] = json!(true);
    }
    value
}

type FormOf = (&'static str, fn(Value) -> (Vec<u8>, Value), fn(Bytes) -> Value);

macro_rules! forms {
    ($($call:literal: $request:ty => $answer:ty),* $(,)?) => {
        const FORMS: &[FormOf] = &[$(($call, encode::<$request>, decode::<$answer>)),*];
    };
}

forms! {
    "KV/Range": kv::RangeRequest => kv::RangeResponse,
    "KV/Put": kv::PutRequest => kv::PutResponse,
    "KV/DeleteRange": kv::DeleteRangeRequest => kv::DeleteRangeResponse,
    "KV/Txn": kv::TxnRequest => kv::TxnResponse,
    "KV/Compact": kv::CompactionRequest => kv::CompactionResponse,
    "Watch/Watch": watch::WatchRequest => watch::WatchResponse,
    "Lease/LeaseGrant": lease::LeaseGrantRequest => lease::LeaseGrantResponse,
    "Lease/LeaseRevoke": lease::LeaseRevokeRequest => lease::LeaseRevokeResponse,
    "Lease/LeaseKeepAlive": lease::LeaseKeepAliveRequest => lease::LeaseKeepAliveResponse,
    "Lease/LeaseTimeToLive": lease::LeaseTimeToLiveRequest => lease::LeaseTimeToLiveResponse,
    "Lease/LeaseLeases": lease::LeaseLeasesRequest => lease::LeaseLeasesResponse,
    "Cluster/MemberAdd": cluster::MemberAddRequest => cluster::MemberAddResponse,
    "Cluster/MemberRemove": cluster::MemberRemoveRequest => cluster::MemberRemoveResponse,
    "Cluster/MemberUpdate": cluster::MemberUpdateRequest => cluster::MemberUpdateResponse,
    "Cluster/MemberList": cluster::MemberListRequest => cluster::MemberListResponse,
    "Cluster/MemberPromote": cluster::MemberPromoteRequest => cluster::MemberPromoteResponse,
    "Maintenance/Alarm": maintenance::AlarmRequest => maintenance::AlarmResponse,
    "Maintenance/Status": maintenance::StatusRequest => maintenance::StatusResponse,
    "Maintenance/Defragment": maintenance::DefragmentRequest => maintenance::DefragmentResponse,
    "Maintenance/Hash": maintenance::HashRequest => maintenance::HashResponse,
    "Maintenance/HashKV": maintenance::HashKVRequest => maintenance::HashKVResponse,
    "Maintenance/Snapshot": maintenance::SnapshotRequest => maintenance::SnapshotResponse,
    "Maintenance/MoveLeader": maintenance::MoveLeaderRequest => maintenance::MoveLeaderResponse,
    "Maintenance/Downgrade": maintenance::DowngradeRequest => maintenance::DowngradeResponse,
    "Auth/AuthEnable": auth::AuthEnableRequest => auth::AuthEnableResponse,
    "Auth/AuthDisable": auth::AuthDisableRequest => auth::AuthDisableResponse,
    "Auth/AuthStatus": auth::AuthStatusRequest => auth::AuthStatusResponse,
    "Auth/Authenticate": auth::AuthenticateRequest => auth::AuthenticateResponse,
    "Auth/UserAdd": auth::AuthUserAddRequest => auth::AuthUserAddResponse,
    "Auth/UserGet": auth::AuthUserGetRequest => auth::AuthUserGetResponse,
    "Auth/UserList": auth::AuthUserListRequest => auth::AuthUserListResponse,
    "Auth/UserDelete": auth::AuthUserDeleteRequest => auth::AuthUserDeleteResponse,
    "Auth/UserChangePassword": auth::AuthUserChangePasswordRequest => auth::AuthUserChangePasswordResponse,
    "Auth/UserGrantRole": auth::AuthUserGrantRoleRequest => auth::AuthUserGrantRoleResponse,
    "Auth/UserRevokeRole": auth::AuthUserRevokeRoleRequest => auth::AuthUserRevokeRoleResponse,
    "Auth/RoleAdd": auth::AuthRoleAddRequest => auth::AuthRoleAddResponse,
    "Auth/RoleGet": auth::AuthRoleGetRequest => auth::AuthRoleGetResponse,
    "Auth/RoleList": auth::AuthRoleListRequest => auth::AuthRoleListResponse,
    "Auth/RoleDelete": auth::AuthRoleDeleteRequest => auth::AuthRoleDeleteResponse,
    "Auth/RoleGrantPermission": auth::AuthRoleGrantPermissionRequest => auth::AuthRoleGrantPermissionResponse,
    "Auth/RoleRevokePermission": auth::AuthRoleRevokePermissionRequest => auth::AuthRoleRevokePermissionResponse,
    "Lock/Lock": lock::LockRequest => lock::LockResponse,
    "Lock/Unlock": lock::UnlockRequest => lock::UnlockResponse,
    "Election/Campaign": election::CampaignRequest => election::CampaignResponse,
    "Election/Proclaim": election::ProclaimRequest => election::ProclaimResponse,
    "Election/Leader": election::LeaderRequest => election::LeaderResponse,
    "Election/Observe": election::LeaderRequest => election::LeaderResponse,
    "Election/Resign": election::ResignRequest => election::ResignResponse,
}

/// Changes the text of every field that holds bytes.
fn map_bytes(value: Value, names: bool, change: &dyn Fn(&str) -> String) -> Value {
    let changed = |value: Value| match value {
        Value::String(text) => Value::String(change(&text)),
        other => map_bytes(other, names, change),
    };
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| {
                    let bytes =
                        matches!(name.as_str(), "key" | "value" | "range_end" | "blob") || names && name == "name";
                    let value = match value {
                        Value::Array(each) if name == "keys" => Value::Array(each.into_iter().map(changed).collect()),
                        value if bytes => changed(value),
                        value => map_bytes(value, names, change),
                    };
                    (name, value)
                })
                .collect(),
        ),
        Value::Array(each) => Value::Array(each.into_iter().map(|value| map_bytes(value, names, change)).collect()),
        other => other,
    }
}

/// What marks bytes that are no text.
const HEX: &str = "hex:";

fn to_base64(text: &str) -> String {
    match text.strip_prefix(HEX) {
        Some(hex) => {
            let digits: Vec<_> = hex.chars().map(|digit| digit.to_digit(16).expect("hex") as u8).collect();
            STANDARD.encode(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect::<Vec<_>>())
        }
        None => STANDARD.encode(text),
    }
}

fn to_text(base64: &str) -> String {
    let bytes = STANDARD.decode(base64).expect("our own base64");
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let hex: String = error.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{HEX}{hex}")
    })
}
