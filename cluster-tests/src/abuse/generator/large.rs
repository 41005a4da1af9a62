//! The largest requests that are legal.
//!
//! Owns what is added to a request so that it says the same in more bytes: spaces behind JSON, a field that nobody knows behind a message
//! of protobuf, a field of the head where there is no body. Never changes what a request asks for.

use super::operations::Operation;
use crate::abuse::way::{self, PREFIX_BYTES, Way};
use cluster_harness::http::Request;

/// The length of the field that is added to a head.
const HEAD_BYTES: usize = 8 * 1024;
/// The longest message of a stream of etcd's protocol that is taken, and some less.
const STREAM_MESSAGE_BYTES: usize = 32 * 1024;

/// The request of an operation with this many bytes more.
pub fn grown(operation: &Operation, bytes: usize) -> Request {
    let request = operation.request.clone();
    let Some(body) = operation.request.body.as_deref() else {
        return request.header("X-Padding", "x".repeat(HEAD_BYTES));
    };
    let body = match operation.way {
        Way::Grpc if operation.goes_on => grown_message(body, bytes.min(STREAM_MESSAGE_BYTES)),
        Way::Grpc => grown_message(body, bytes),
        _ => [body, " ".repeat(bytes).as_bytes()].concat(),
    };
    request.body(body)
}

/// The same, but with a body for those, too, that need none.
pub fn with_body(operation: &Operation, bytes: usize) -> Request {
    match operation.request.body {
        Some(_) => grown(operation, bytes),
        None => operation.request.clone().body(vec![b' '; bytes]),
    }
}

/// A message with one field more that no message has: of number 1000, and of bytes.
fn grown_message(framed: &[u8], bytes: usize) -> Vec<u8> {
    let mut message = framed[PREFIX_BYTES..].to_vec();
    message.extend(varint((1_000 << 3) | 2));
    message.extend(varint(bytes));
    message.resize(message.len() + bytes, 0);
    way::framed(&message)
}

/// A number of protobuf: 7 bits in each byte, the lowest first.
fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 128 {
        bytes.push((number % 128) as u8 | 128);
        number /= 128;
    }
    bytes.push(number as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use quorate_etcd_api::Message;
    use quorate_etcd_api::kv::PutRequest;

    use super::*;

    fn operation(way: Way, request: Request) -> Operation {
        let name = String::new();
        Operation { way, name, dear: request.clone(), request, lasts: false, goes_on: false, holds: false }
    }

    #[test]
    fn what_has_grown_says_the_same() {
        let put = PutRequest { key: b"k".as_slice().into(), value: b"v".as_slice().into(), ..PutRequest::default() };
        let call = grown(&operation(Way::Grpc, way::call("/", &put.encode_to_vec())), 1_000);
        let body = call.body.expect("a message");
        assert!(body.len() > 1_000);
        assert_eq!(PutRequest::decode(&body[PREFIX_BYTES..]).expect("it can be read"), put);
        let post = grown(&operation(Way::Http1, Request::post("/", r#"{"a":1}"#)), 1_000).body.expect("a body");
        assert_eq!((post.len(), post.trim_ascii()), (1_007, &br#"{"a":1}"#[..]));
    }

    #[test]
    fn a_request_without_a_body_can_announce_one() {
        let get = operation(Way::Http2, Request::get("/"));
        assert_eq!(grown(&get, 1_000).body, None);
        assert_eq!(with_body(&get, 10).body, Some(vec![b' '; 10]));
    }
}
