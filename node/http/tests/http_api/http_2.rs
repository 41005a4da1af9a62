//! HTTP/2 by hand, for requests that no client would send.
//!
//! Owns how bytes become frames. Never judges what is in them.

/// What a client says first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A piece of a body.
pub const DATA: u8 = 0;
/// Begins a request.
pub const HEADERS: u8 = 1;
/// Gives a stream up.
pub const RST_STREAM: u8 = 3;
/// What each side says of itself; the first frame of both.
pub const SETTINGS: u8 = 4;

/// Nothing more comes on the stream.
pub const END_STREAM: u8 = 1;
/// No more headers come.
pub const END_HEADERS: u8 = 4;

/// A frame, whole.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
