//! The requests of honest clients, by each protocol: to write, to read, and to keep a session.
//!
//! Owns the requests and the reading of their answers. A session of etcd's protocol is a lease. Never sends anything.

use bytes::Bytes;
use quorate_etcd_api::Message;
use quorate_etcd_api::kv::{PutRequest, RangeRequest};
use quorate_etcd_api::lease::{LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse};
use serde::Serialize;
use serde_json::Value;

use crate::abuse::asker::Told;
use crate::abuse::way::{self, PREFIX_BYTES, Way};
use cluster_harness::http::Request;

/// A message of etcd as a request by gRPC or by its gateway.
fn etcd(way: Way, path: &str, gateway: &str, message: &(impl Message + Serialize)) -> Request {
    match way {
        Way::Grpc => way::call(path, &message.encode_to_vec()),
        _ => Request::post(gateway, serde_json::to_string(message).expect("a message is JSON")),
    }
}

/// Writes a number at a key.
pub fn write(way: Way, key: &str, value: u64) -> Request {
    if matches!(way, Way::Http1 | Way::Http2) {
        return Request::put(key, value.to_string());
    }
    let (key, value) = (Bytes::copy_from_slice(key.as_bytes()), Bytes::from(value.to_string()));
    etcd(way, "/etcdserverpb.KV/Put", "/v3/kv/put", &PutRequest { key, value, ..PutRequest::default() })
}

/// Reads a key, or that nothing is there.
pub fn read(way: Way, key: &str) -> Request {
    if matches!(way, Way::Http1 | Way::Http2) {
        return Request::get(format!("/v1/kv/{key}"));
    }
    let key = Bytes::copy_from_slice(key.as_bytes());
    etcd(way, "/etcdserverpb.KV/Range", "/v3/kv/range", &RangeRequest { key, ..RangeRequest::default() })
}

/// Tells whether a key was read, or found absent.
pub fn is_read(told: &Told) -> bool {
    told.is_success() || told.status == 404
}

/// Opens a session that lives for whole seconds.
pub fn begin_session(way: Way, ttl_ms: u64) -> Request {
    if matches!(way, Way::Http1 | Way::Http2) {
        return Request::post("/v1/sessions", format!("{{\"ttl_ms\":{ttl_ms}}}"));
    }
    let ttl = i64::try_from(ttl_ms / 1_000).expect("it does not live that long");
    let grant = LeaseGrantRequest { ttl, ..LeaseGrantRequest::default() };
    etcd(way, "/etcdserverpb.Lease/LeaseGrant", "/v3/lease/grant", &grant)
}

/// The id of a session, if one was opened.
pub fn id_of(way: Way, told: &Told) -> Option<String> {
    match way {
        Way::Http1 | Way::Http2 => json(told)["session"].as_str().map(str::to_owned),
        Way::Grpc => message::<LeaseGrantResponse>(told).map(|granted| granted.id.to_string()),
        Way::Gateway => json(told)["ID"].as_str().map(str::to_owned),
    }
}

/// Renews a session.
pub fn renew(way: Way, id: &str) -> Request {
    if matches!(way, Way::Http1 | Way::Http2) {
        return Request::post(format!("/v1/sessions/{id}/renew"), "{}");
    }
    let keep = LeaseKeepAliveRequest { id: id.parse().expect("the number of a lease") };
    etcd(way, "/etcdserverpb.Lease/LeaseKeepAlive", "/v3/lease/keepalive", &keep)
}

/// Tells whether the session lives on. etcd gives no time to a lease that is gone.
pub fn is_renewed(way: Way, told: &Told) -> bool {
    let lives = match way {
        Way::Http1 | Way::Http2 => true,
        Way::Grpc => message::<LeaseKeepAliveResponse>(told).is_some_and(|kept| kept.ttl > 0),
        Way::Gateway => json(told)["result"]["TTL"].as_str().is_some_and(|ttl| ttl != "0"),
    };
    told.is_success() && lives
}

fn json(told: &Told) -> Value {
    serde_json::from_slice(&told.body).unwrap_or_default()
}

/// The first message of an answer over gRPC.
fn message<A: Message + Default>(told: &Told) -> Option<A> {
    let framed = told.body.get(..PREFIX_BYTES)?;
    let length = u32::from_be_bytes(framed[1..].try_into().ok()?) as usize;
    A::decode(told.body.get(PREFIX_BYTES..PREFIX_BYTES + length)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: Vec<u8>) -> Told {
        Told { status: 200, code: None, term: None, body: body.into() }
    }

    #[test]
    fn a_session_has_one_id_whichever_protocol_it_came_by() {
        let granted = LeaseGrantResponse { id: 42, ttl: 5, ..LeaseGrantResponse::default() };
        let framed = way::framed(&granted.encode_to_vec());
        let id = Some("42".to_owned());
        assert_eq!(id_of(Way::Grpc, &told(framed)), id);
        assert_eq!(id_of(Way::Gateway, &told(serde_json::to_vec(&granted).expect("JSON"))), id);
        assert_eq!(id_of(Way::Http2, &told(br#"{"session":"42"}"#.to_vec())), id);
        assert_eq!(id_of(Way::Http2, &told(br#"{"code":"locked"}"#.to_vec())), None);
    }

    #[test]
    fn a_lease_without_time_is_lost() {
        for (ttl, lives) in [(5, true), (0, false)] {
            let kept = LeaseKeepAliveResponse { id: 42, ttl, ..LeaseKeepAliveResponse::default() };
            let framed = way::framed(&kept.encode_to_vec());
            assert_eq!(is_renewed(Way::Grpc, &told(framed)), lives);
            let line = serde_json::json!({ "result": kept }).to_string();
            assert_eq!(is_renewed(Way::Gateway, &told(line.into_bytes())), lives);
        }
    }
}
