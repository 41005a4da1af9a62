//! What a message is made of, as it is counted before it is decoded, against what comes of decoding it.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use quorate_etcd_api::Message;
use quorate_etcd_api::cluster::{MemberAddRequest, MemberUpdateRequest};
use quorate_etcd_api::kv::{
    Compare, CompareTargetUnion, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, RequestOpRequest, TxnRequest,
};
use quorate_etcd_api::measure::{Fault, Measure, Measured, of_json, of_proto};
use quorate_etcd_api::watch::{WatchCreateRequest, WatchRequest, WatchRequestRequestUnion};
use serde_json::Value;

const ANY: Measure = Measure { elements: usize::MAX, fields: usize::MAX };
const SOME: Measure = Measure { elements: 1_024, fields: 32 * 1_024 };

fn measured<M: Measured>(bytes: &[u8]) -> Result<usize, Fault> {
    of_proto::<M>(bytes, ANY).map(|found| found.elements)
}

/// Comparisons and operations of what was decoded.
fn operations(txn: &TxnRequest) -> usize {
    let within = |operation: &RequestOp| match &operation.request {
        Some(RequestOpRequest::RequestTxn(txn)) => operations(txn),
        _ => 0,
    };
    let nested: usize = txn.success.iter().chain(&txn.failure).map(within).sum();
    txn.compare.len() + txn.success.len() + txn.failure.len() + nested
}

fn nest(within: TxnRequest) -> TxnRequest {
    let operation = RequestOp { request: Some(RequestOpRequest::RequestTxn(within)) };
    TxnRequest { success: vec![operation], ..TxnRequest::default() }
}

fn filtered(filters: Vec<i32>) -> WatchRequest {
    let create = WatchCreateRequest { filters, ..WatchCreateRequest::default() };
    WatchRequest { request_union: Some(WatchRequestRequestUnion::CreateRequest(create)) }
}

#[test]
fn what_there_is_too_much_of_is_seen_before_what_is_wrong_behind_it() {
    let empty = |count: usize| [0x12_u8, 0].repeat(count);
    let found = of_proto::<TxnRequest>(&empty(1_024), SOME);
    assert_eq!(found, Ok(Measure { elements: 1_024, fields: 1_024 }));
    for count in [1_025, 100_000] {
        let many = [empty(count), vec![0xff]].concat();
        assert_eq!(of_proto::<TxnRequest>(&many, SOME), Err(Fault::TooMuch), "{count}");
        assert_eq!(measured::<TxnRequest>(&many), Err(Fault::Malformed), "{count}");
    }
    // Comparisons and both branches, and what is nested, are one sum.
    let [compare, success, failure] = [0x0a_u8, 0x12, 0x1a].map(|key| [key, 0].repeat(400));
    assert_eq!(of_proto::<TxnRequest>(&[&compare[..], &success].concat(), SOME).map(|found| found.elements), Ok(800));
    assert_eq!(of_proto::<TxnRequest>(&[compare, success, failure].concat(), SOME), Err(Fault::TooMuch));
    let inner = |count: usize| TxnRequest { failure: vec![RequestOp::default(); count], ..TxnRequest::default() };
    assert_eq!(
        of_proto::<TxnRequest>(&nest(inner(1_023)).encode_to_vec(), SOME).map(|found| found.elements),
        Ok(1_024)
    );
    assert_eq!(of_proto::<TxnRequest>(&nest(inner(1_024)).encode_to_vec(), SOME), Err(Fault::TooMuch));
    // What comes twice is one message with the lists of both.
    let operation = [0x22_u8, 4, 0x12, 0, 0x12, 0, 0x22, 2, 0x1a, 0];
    let twice = [&[0x12, operation.len() as u8][..], &operation].concat();
    assert_eq!(measured::<TxnRequest>(&twice), Ok(4));
    assert_eq!(operations(&TxnRequest::decode(&twice[..]).expect("it is one")), 4);
}

#[test]
fn fields_are_bounded_whatever_they_are() {
    let revision = [0x20_u8, 1].repeat(100);
    let range = [&[0x0a_u8, 0xc8, 1][..], &revision].concat();
    let operation = [&[0x12_u8, 0xcb, 1][..], &range].concat();
    assert_eq!(of_proto::<TxnRequest>(&operation, ANY), Ok(Measure { elements: 1, fields: 102 }));
    for (field, name) in [([0x20_u8, 1], "a number"), ([0x7a, 0], "bytes of no field"), ([0x7b, 0x7c], "groups")] {
        assert_eq!(of_proto::<RangeRequest>(&field.repeat(1_000_000), SOME), Err(Fault::TooMuch), "{name}");
    }
}

#[test]
fn other_lists_are_bounded_like_transactions() {
    let filters = filtered(vec![0; 1_024]).encode_to_vec();
    assert_eq!(of_proto::<WatchRequest>(&filters, SOME).map(|found| found.elements), Ok(1_024));
    assert_eq!(of_proto::<WatchRequest>(&filtered(vec![1; 1_025]).encode_to_vec(), SOME), Err(Fault::TooMuch));
    // One by one, as a client that packs nothing writes them.
    let unpacked = [0x0a_u8, 6, 0x28, 0, 0x28, 1, 0x28, 0];
    assert_eq!(measured::<WatchRequest>(&unpacked), Ok(3));
    let peer_urls = vec![String::new(); 1_025];
    let add = MemberAddRequest { peer_urls: peer_urls.clone(), is_learner: true };
    assert_eq!(of_proto::<MemberAddRequest>(&add.encode_to_vec(), SOME), Err(Fault::TooMuch));
    let update = MemberUpdateRequest { id: 7, peer_urls };
    assert_eq!(of_proto::<MemberUpdateRequest>(&update.encode_to_vec(), SOME), Err(Fault::TooMuch));
}

#[test]
fn what_cannot_be_decoded_is_not_tried() {
    let malformed: [(&str, &[u8]); 12] = [
        ("a key alone", &[0x12]),
        ("a length that is cut off", &[0x12, 0x80]),
        ("a key that has no end", &[0x80; 11]),
        ("a number of more than 64 bits", &[0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]),
        ("the largest length", &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ("a length beyond the end", &[0x12, 5, 0]),
        ("field 0", &[0x02, 0]),
        ("a kind of value that there is not", &[0x7e]),
        ("a number in the place of a message", &[0x10, 1]),
        ("a group in the place of a message", &[0x13, 0x14]),
        ("a group without an end", &[0x7b, 0x08, 1]),
        ("an end without a group", &[0x7c]),
    ];
    for (name, bytes) in malformed {
        assert_eq!(measured::<TxnRequest>(bytes), Err(Fault::Malformed), "{name}");
        assert!(TxnRequest::decode(bytes).is_err(), "{name}");
    }
    assert_eq!(
        measured::<TxnRequest>(&[0x7b, 0x7b, 0x08, 1, 0x7c, 0x7d, 1, 2, 3, 4, 0x7c]),
        Ok(0),
        "groups, passed over"
    );
    assert_eq!(measured::<TxnRequest>(&[[0x7b_u8; 10_000], [0x7c; 10_000]].concat()), Ok(0), "in no stack");
    // What is decoded of a field goes beyond what it is in before that is found out.
    let leads_out = [vec![0x12_u8, 2, 0x22, 100], [0x12, 0].repeat(50)].concat();
    assert_eq!(measured::<TxnRequest>(&leads_out), Err(Fault::Malformed));
}

#[test]
fn messages_stand_as_deep_in_each_other_as_they_are_decoded() {
    let deep = |depth: usize| (0..depth).fold(TxnRequest::default(), |within, _| nest(within)).encode_to_vec();
    for depth in 0..60 {
        let bytes = deep(depth);
        assert_eq!(measured::<TxnRequest>(&bytes).is_ok(), TxnRequest::decode(&bytes[..]).is_ok(), "{depth}");
    }
    assert_eq!((measured::<TxnRequest>(&deep(50)), measured::<TxnRequest>(&deep(51))), (Ok(50), Err(Fault::Malformed)));
    assert_eq!(of_json(&[b"[".repeat(128), b"]".repeat(128)].concat(), ANY).map(|found| found.elements), Ok(127));
    assert_eq!(of_json(&b"[".repeat(1_000_000), ANY), Err(Fault::Malformed));
}

#[test]
fn json_has_as_many_elements_as_its_lists() {
    let elements = |text: &str| of_json(text.as_bytes(), ANY).expect("it is not deep").elements;
    for (text, count) in [
        ("", 0),
        ("{}", 0),
        (r#"{"success": [ ] , "failure":[]}"#, 0),
        (r#"{"success": [{}, {"request_txn": {"compare": [{}]}}], "failure": [{}]}"#, 4),
        (r#"{"key": "[\"[,,\\", "filters": ["NOPUT" , 1]}"#, 2),
        ("[[],[[]]]", 3),
        (r#"["no end, "#, 1),
    ] {
        assert_eq!(elements(text), count, "{text}");
    }
    let empty = format!(r#"{{"success":[{}]}}"#, ["{}"; 1_025].join(","));
    assert_eq!(of_json(empty.as_bytes(), SOME), Err(Fault::TooMuch));
    // What an enumeration has in the place of a name is read whole before it is refused.
    let members: Vec<_> = (0..40_000).map(|n| format!(r#""{n}":0"#)).collect();
    let named = format!(r#"{{"sort_order":{{{}}}}}"#, members.join(","));
    assert_eq!(of_json(named.as_bytes(), SOME), Err(Fault::TooMuch));
}

fn some_bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..4).prop_map(Bytes::from)
}

fn compare() -> impl Strategy<Value = Compare> {
    let with = prop_oneof![
        Just(None),
        any::<i64>().prop_map(|number| Some(CompareTargetUnion::Lease(number))),
        some_bytes().prop_map(|value| Some(CompareTargetUnion::Value(value))),
    ];
    (0..4_i32, some_bytes(), with).prop_map(|(result, key, target_union)| Compare {
        result,
        key,
        target_union,
        ..Compare::default()
    })
}

fn txn(depth: usize) -> BoxedStrategy<TxnRequest> {
    let range = (some_bytes(), any::<i64>(), any::<bool>()).prop_map(|(key, revision, count_only)| {
        RequestOpRequest::RequestRange(RangeRequest { key, revision, count_only, ..RangeRequest::default() })
    });
    let put = (some_bytes(), some_bytes(), any::<i64>()).prop_map(|(key, value, lease)| {
        RequestOpRequest::RequestPut(PutRequest { key, value, lease, ..PutRequest::default() })
    });
    let delete = (some_bytes(), some_bytes()).prop_map(|(key, range_end)| {
        RequestOpRequest::RequestDeleteRange(DeleteRangeRequest { key, range_end, ..DeleteRangeRequest::default() })
    });
    let within = match depth {
        0 => Just(RequestOpRequest::RequestTxn(TxnRequest::default())).boxed(),
        _ => txn(depth - 1).prop_map(RequestOpRequest::RequestTxn).boxed(),
    };
    let request = prop_oneof![range, put, delete, within];
    let operation = proptest::option::of(request).prop_map(|request| RequestOp { request }).boxed();
    (vec(compare(), 0..3), vec(operation.clone(), 0..4), vec(operation, 0..3))
        .prop_map(|(compare, success, failure)| TxnRequest { compare, success, failure })
        .boxed()
}

/// Bytes that are parts of a transaction more often than any others.
fn likely_bytes() -> impl Strategy<Value = Vec<u8>> {
    let likely = vec![0x0a, 0x12, 0x1a, 0x22, 0, 0, 1, 2, 4, 6, 8, 0x20, 0x28, 0x2a, 0x7a, 0x7b, 0x7c, 0x80];
    vec(select(likely), 0..40)
}

fn json(depth: usize) -> BoxedStrategy<Value> {
    let single = prop_oneof![
        Just(Value::Null),
        any::<i32>().prop_map(Value::from),
        r#"[\[\],"\\{}:a ]{0,6}"#.prop_map(Value::from)
    ];
    if depth == 0 {
        return single.boxed();
    }
    let list = vec(json(depth - 1), 0..4).prop_map(Value::from);
    let object =
        vec(("[a-z,\"]{1,3}", json(depth - 1)), 0..4).prop_map(|members| members.into_iter().collect::<Value>());
    prop_oneof![single, list, object].boxed()
}

/// Elements of all lists in it.
fn elements(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len() + items.iter().map(elements).sum::<usize>(),
        Value::Object(members) => members.values().map(elements).sum(),
        _ => 0,
    }
}

/// What can be decoded was measured, and has no more than that.
fn measure_holds<M: Measured + Message + Default>(
    bytes: &[u8],
    count: impl Fn(&M) -> usize,
) -> Result<(), TestCaseError> {
    let found = measured::<M>(bytes);
    if let Ok(read) = M::decode(bytes) {
        prop_assert!(found.is_ok_and(|found| found >= count(&read)), "{:?} of {:?}", found, bytes);
    }
    Ok(())
}

fn filters(request: &WatchRequest) -> usize {
    match &request.request_union {
        Some(WatchRequestRequestUnion::CreateRequest(create)) => create.filters.len(),
        _ => 0,
    }
}

proptest! {
    #[test]
    fn a_transaction_has_what_was_counted(txn in txn(3)) {
        let (bytes, count) = (txn.encode_to_vec(), operations(&txn));
        let found = of_proto::<TxnRequest>(&bytes, ANY);
        prop_assert_eq!(found.map(|found| found.elements), Ok(count));
        let most = |elements: usize| Measure { elements, ..ANY };
        prop_assert_eq!(of_proto::<TxnRequest>(&bytes, most(count)), found);
        if let Some(less) = count.checked_sub(1) {
            prop_assert_eq!(of_proto::<TxnRequest>(&bytes, most(less)), Err(Fault::TooMuch));
        }
        let text = serde_json::to_vec(&txn).expect("JSON");
        prop_assert_eq!(of_json(&text, ANY).map(|found| found.elements), Ok(count));
    }

    #[test]
    fn a_transaction_that_was_changed_has_no_more_than_was_counted(
        txn in txn(2), place in any::<prop::sample::Index>(), byte in any::<u8>(), is_cut in any::<bool>(),
    ) {
        let mut bytes = txn.encode_to_vec();
        prop_assume!(!bytes.is_empty());
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if is_cut {
            bytes.truncate(place + 1);
        }
        measure_holds::<TxnRequest>(&bytes, operations)?;
    }

    #[test]
    fn any_bytes_have_no_more_than_was_counted(random in vec(any::<u8>(), 0..64), likely in likely_bytes()) {
        for bytes in [&random, &likely] {
            measure_holds::<TxnRequest>(bytes, operations)?;
            measure_holds::<WatchRequest>(bytes, filters)?;
            measure_holds::<MemberAddRequest>(bytes, |add| add.peer_urls.len())?;
            measure_holds::<RangeRequest>(bytes, |_| 0)?;
            // Whatever it is.
            let _either = of_json(bytes, SOME);
        }
    }

    #[test]
    fn json_has_what_was_counted(value in json(4)) {
        let text = value.to_string();
        prop_assert_eq!(of_json(text.as_bytes(), ANY).map(|found| found.elements), Ok(elements(&value)), "{}", text);
    }
}
