//! Messages in both forms, as etcd and its gateway write them.

use bytes::Bytes;
use quorate_etcd_api::cluster::{Member, MemberListResponse};
use quorate_etcd_api::entry::KeyValue;
use quorate_etcd_api::header::ResponseHeader;
use quorate_etcd_api::kv::{
    Compare, CompareCompareResult, CompareCompareTarget, CompareTargetUnion, PutRequest, RangeRequest,
    RangeRequestSortOrder, RequestOp, RequestOpRequest, TxnRequest, TxnResponse,
};
use quorate_etcd_api::lease::{LeaseKeepAliveResponse, LeaseTimeToLiveResponse};
use quorate_etcd_api::watch::{WatchCreateRequest, WatchRequest, WatchRequestRequestUnion};
use quorate_etcd_api::{Code, Error, METHODS, Message};
use serde_json::{from_value, json, to_value};

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[test]
fn fields_have_the_numbers_of_the_protocol() {
    let range = RangeRequest {
        key: bytes("a"),
        range_end: bytes("b"),
        limit: 3,
        revision: 7,
        sort_order: RangeRequestSortOrder::Descend.into(),
        count_only: true,
        max_create_revision: 9,
        ..RangeRequest::default()
    };
    let encoded = [10, 1, b'a', 18, 1, b'b', 24, 3, 32, 7, 40, 2, 72, 1, 104, 9];
    assert_eq!(range.encode_to_vec(), encoded);
    assert_eq!(RangeRequest::decode(&encoded[..]).expect("what was encoded"), range);
    let compare =
        Compare { range_end: bytes("z"), target_union: Some(CompareTargetUnion::Lease(5)), ..Compare::default() };
    assert_eq!(compare.encode_to_vec(), [64, 5, 0x82, 4, 1, b'z']);
    let create =
        WatchCreateRequest { key: bytes("k"), start_revision: 2, fragment: true, ..WatchCreateRequest::default() };
    let watch = WatchRequest { request_union: Some(WatchRequestRequestUnion::CreateRequest(create)) };
    assert_eq!(watch.encode_to_vec(), [10, 7, 10, 1, b'k', 24, 2, 64, 1]);
}

#[test]
fn json_is_that_of_the_gateway() {
    let header = ResponseHeader { cluster_id: u64::MAX, member_id: 1, revision: 1 << 60, raft_term: 2 };
    let value = KeyValue { key: bytes("foo"), value: bytes("bar?>"), mod_revision: 3, ..KeyValue::default() };
    assert_eq!(to_value(&value).expect("JSON"), json!({"key": "Zm9v", "value": "YmFyPz4=", "mod_revision": "3"}));
    let read =
        from_value::<KeyValue>(json!({"key": "Zm9v", "value": "YmFyPz4", "modRevision": 3, "lease": null, "new": [1]}));
    assert_eq!(read.expect("either form"), value);
    assert_eq!(from_value::<KeyValue>(json!({"value": "YmFyPz4="})).expect("base64").value, "bar?>");
    let seen = to_value(MemberListResponse {
        header: Some(header),
        members: vec![Member { id: 5, client_urls: vec!["http://a".into()], is_learner: true, ..Member::default() }],
    });
    assert_eq!(
        seen.expect("JSON"),
        json!({"header": {"cluster_id": "18446744073709551615", "member_id": "1", "revision": "1152921504606846976", "raft_term": "2"},
               "members": [{"ID": "5", "clientURLs": ["http://a"], "isLearner": true}]})
    );
    // A lease that is gone has no TTL, a transaction that failed no `succeeded`.
    assert_eq!(to_value(LeaseKeepAliveResponse { id: 9, ..Default::default() }).expect("JSON"), json!({"ID": "9"}));
    assert_eq!(to_value(TxnResponse::default()).expect("JSON"), json!({}));
    let keys = LeaseTimeToLiveResponse { ttl: -1, keys: vec![bytes("k")], ..Default::default() };
    assert_eq!(to_value(keys).expect("JSON"), json!({"TTL": "-1", "keys": ["aw=="]}));
}

#[test]
fn transactions_are_read_as_clients_write_them() {
    let read = from_value::<TxnRequest>(json!({
        "compare": [{"target": "CREATE", "key": "Zm9v", "create_revision": "0"}, {"key": "Zm9v", "target": 3, "result": "LESS", "value": "YQ=="}],
        "success": [{"request_put": {"key": "Zm9v", "value": "YmFy", "lease": "17"}}, {"requestTxn": {"success": [{"request_range": {}}]}}],
    }));
    let read = read.expect("a transaction");
    let created = Compare {
        target: CompareCompareTarget::Create.into(),
        key: bytes("foo"),
        target_union: Some(CompareTargetUnion::CreateRevision(0)),
        ..Compare::default()
    };
    assert_eq!(read.compare[0], created);
    assert_eq!(read.compare[1].result, i32::from(CompareCompareResult::Less));
    let put = PutRequest { key: bytes("foo"), value: bytes("bar"), lease: 17, ..PutRequest::default() };
    assert_eq!(read.success[0], RequestOp { request: Some(RequestOpRequest::RequestPut(put)) });
    assert_eq!(
        to_value(&read).expect("JSON")["success"][1],
        json!({"request_txn": {"success": [{"request_range": {}}]}})
    );
    assert_eq!(
        to_value(&read.compare[0]).expect("JSON"),
        json!({"target": "CREATE", "key": "Zm9v", "create_revision": "0"})
    );
    // What is wrong within an alternative is wrong, and not the default: else a comparison with `abc` would hold where nothing is.
    for wrong in [
        json!({"target": "VERSION", "key": "Zm9v", "version": "abc"}),
        json!({"key": "Zm9v", "value": "!!"}),
        json!({"version": 1, "lease": 2}),
    ] {
        assert!(from_value::<Compare>(wrong.clone()).is_err(), "{wrong}");
    }
    for wrong in [json!({"request_put": {"key": "!!"}}), json!({"request_put": {}, "request_delete_range": {}})] {
        assert!(from_value::<RequestOp>(wrong.clone()).is_err(), "{wrong}");
    }
    assert!(from_value::<WatchRequest>(json!({"create_request": {"filters": ["NONE"]}})).is_err());
    assert_eq!(from_value::<Compare>(json!({"lease": null})).expect("null is nothing").target_union, None);
    assert!(from_value::<RangeRequest>(json!({"sort_order": "SIDEWAYS"})).is_err());
    assert!(from_value::<RangeRequest>(json!({"limit": 1.5})).is_err());
    assert!(from_value::<RangeRequest>(json!({"key": "?"})).is_err());
}

#[test]
fn methods_and_errors_are_those_of_the_protocol() {
    let of = |path: &str| METHODS.iter().find(|method| method.path == path).unwrap_or_else(|| panic!("no {path}"));
    assert_eq!(of("/etcdserverpb.KV/Range").gateway, ["/v3/kv/range"]);
    assert_eq!(of("/etcdserverpb.Lease/LeaseRevoke").gateway, ["/v3/lease/revoke", "/v3/kv/lease/revoke"]);
    assert!(of("/etcdserverpb.Watch/Watch").client_streams && of("/etcdserverpb.KV/RangeStream").server_streams);
    assert_eq!(of("/v3lockpb.Lock/Lock").gateway, ["/v3/lock/lock"]);
    assert_eq!(
        (Error::LeaseNotFound.code(), Error::LeaseNotFound.text()),
        (Code::NotFound, "etcdserver: requested lease not found")
    );
    assert_eq!(Error::Compacted.code().http_status(), 400);
    assert!(Error::ALL.iter().all(|error| !error.text().is_empty() && error.code() != Code::Ok));
}
