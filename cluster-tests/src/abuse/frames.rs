//! HTTP/2 written by hand, for what no HTTP/2 client would do.
//!
//! Owns the frames that attacks need. Never reads an answer.

use super::http_2::{DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, RST_STREAM, SETTINGS, frame};
use cluster_harness::http::Request;

const WINDOW_UPDATE: u8 = 8;
/// No more headers, and no body.
const END: u8 = END_HEADERS | END_STREAM;
/// Acknowledges the settings of the peer.
const ACK: u8 = 0x1;
/// The longest frame that is taken where nothing else was agreed upon.
const FRAME_BYTES: usize = 16_384;
const INITIAL_WINDOW_SIZE: u16 = 4;

/// The begin of a connection whose streams have this window: 0 has nothing sent but heads.
pub fn begin(window: u32) -> Vec<u8> {
    let mut setting = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
    setting.extend(window.to_be_bytes());
    [PREFACE, &frame(SETTINGS, 0, 0, &setting)].concat()
}

/// A text of HPACK: its length in 7 bits, and where those are full in as many bytes as it takes, the lowest 7 bits first.
fn text(text: &str) -> Vec<u8> {
    const FULL: usize = 127;
    let mut bytes = vec![text.len().min(FULL) as u8];
    if let Some(mut rest) = text.len().checked_sub(FULL) {
        while rest >= 128 {
            bytes.push((rest % 128) as u8 | 128);
            rest /= 128;
        }
        bytes.push(rest as u8);
    }
    bytes.extend(text.as_bytes());
    bytes
}

/// The head of a request. The names of its first four fields are numbers in the static table of HPACK; all others are as they are.
fn head(method: &str, path: &str, fields: &[(String, String)]) -> Vec<u8> {
    // `:method`, `:scheme: http`, `:authority`, `:path`.
    let mut block = [&[0x02_u8][..], &text(method), &[0x86, 0x01], &text("localhost"), &[0x04], &text(path)].concat();
    for (name, value) in fields {
        block.push(0);
        block.extend(text(&name.to_ascii_lowercase()));
        block.extend(text(value));
    }
    block
}

/// A request without a body.
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END, stream, &head("GET", path, &[]))
}

/// The head of a call over gRPC, whose message may follow or not.
pub fn call(stream: u32, path: &str) -> Vec<u8> {
    let fields = [("content-type".to_owned(), "application/grpc".to_owned())];
    frame(HEADERS, END_HEADERS, stream, &head("POST", path, &fields))
}

/// The head of any request, in one frame; its body may follow or not.
pub fn head_of(stream: u32, request: &Request) -> Vec<u8> {
    let block = head(request.method, &request.target, &request.headers);
    assert!(block.len() <= FRAME_BYTES, "a head of {} bytes", block.len());
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// A part of a body, in as many frames as it takes.
pub fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(FRAME_BYTES).flat_map(|chunk| frame(DATA, 0, stream, chunk)).collect()
}

/// The end of a body.
pub fn end(stream: u32) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, &[])
}

/// From now on the settings of the other side hold, its windows too.
pub fn acknowledge() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, &[])
}

/// Takes a request back.
pub fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &8u32.to_be_bytes())
}

/// Gives the whole connection more window.
pub fn open_window(bytes: u32) -> Vec<u8> {
    open_window_of(0, bytes)
}

/// Gives a stream more window.
pub fn open_window_of(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_nine_bytes_before_what_they_carry() {
        assert_eq!(reset(5), [0, 0, 4, 3, 0, 0, 0, 0, 5, 0, 0, 0, 8]);
        let get = get(1, "/livez");
        assert_eq!(get.len(), 9 + usize::from(get[2]));
        let call = call(1, "/v3lockpb.Lock/Lock");
        assert_eq!((call.len(), call[3], call[4]), (9 + usize::from(call[2]), 1, 4));
        assert_eq!(data(3, &[7; 20_000]).len(), 20_000 + 2 * 9);
        assert!(begin(0).ends_with(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]));
        assert_eq!(end(3), [0, 0, 0, 0, 1, 0, 0, 0, 3]);
    }

    #[test]
    fn fields_are_names_and_values_with_their_lengths() {
        assert_eq!(text("ab"), [2, b'a', b'b']);
        // 1337 = 127 + 58 + 9 · 128.
        assert_eq!(text(&"x".repeat(1_337))[..3], [127, 128 | 58, 9]);
        let head = head_of(1, &Request::get("/k").header("X-Y", "z"));
        let fields = [&[2_u8, 3][..], b"GET", &[0x86, 1, 9], b"localhost", &[4, 2], b"/k", &[0, 3], b"x-y", &[1], b"z"];
        assert_eq!(head[9..], fields.concat());
    }
}
