//! The protocols by which a node is asked.
//!
//! Owns what differs between them in a request: the field that shows who asks, and the frame around a message.

use cluster_harness::http::Request;

kinds! {
    /// A protocol.
    Way {
        /// The API over HTTP/1.1.
        Http1 = "HTTP/1.1",
        /// The API over HTTP/2.
        Http2 = "HTTP/2",
        /// etcd's services over gRPC.
        Grpc = "gRPC",
        /// etcd's services as JSON, over HTTP/1.1.
        Gateway = "JSON gateway",
    }
}

impl Way {
    /// Tells whether it goes over HTTP/2.
    pub fn is_framed(self) -> bool {
        matches!(self, Self::Http2 | Self::Grpc)
    }

    /// Adds this token to a request.
    pub fn by(self, request: Request, token: Option<&str>) -> Request {
        match (self, token) {
            (_, None) => request,
            (Self::Grpc, Some(token)) => request.header("token", token),
            (_, Some(token)) => request.header("Authorization", format!("Bearer {token}")),
        }
    }
}

/// Bytes before a message of gRPC.
pub const PREFIX_BYTES: usize = 5;

/// A call over gRPC with this encoded message.
pub fn call(path: &str, message: &[u8]) -> Request {
    let call = Request::new("POST", path).header("content-type", "application/grpc").header("te", "trailers");
    call.body(framed(message))
}

/// A message as it stands in the body of a call.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a message is not that long").to_be_bytes();
    [&[0_u8][..], &length, message].concat()
}
