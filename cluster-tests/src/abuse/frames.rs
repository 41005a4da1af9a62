//! HTTP/2 written by hand, for what no HTTP/2 client would do.
//!
//! Owns the few frames that attacks need. Never reads an answer.

const DATA: u8 = 0;
const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const WINDOW_UPDATE: u8 = 8;
/// No more headers.
const END_HEADERS: u8 = 0x4;
/// No more headers, and no body.
const END: u8 = END_HEADERS | 0x1;
/// Acknowledges the settings of the peer.
const ACK: u8 = 0x1;
/// The longest frame that is taken where nothing else was agreed upon.
const FRAME_BYTES: usize = 16_384;
const INITIAL_WINDOW_SIZE: u16 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame is short").to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The begin of a connection whose streams have this window: 0 has nothing sent but heads.
pub fn begin(window: u32) -> Vec<u8> {
    let mut setting = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
    setting.extend(window.to_be_bytes());
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(SETTINGS, 0, 0, &setting)].concat()
}

/// `:method: GET` and `:method: POST` in the static table of HPACK.
const GET: u8 = 0x82;
const POST: u8 = 0x83;

/// The head of a request. Names by their number in the static table of HPACK, values as they are; paths are shorter than 127 bytes.
fn head(method: u8, path: &str) -> Vec<u8> {
    let length = u8::try_from(path.len()).ok().filter(|length| *length < 127).expect("a short path");
    // The method, `:scheme: http`, `:authority: localhost`, `:path`.
    let mut block = vec![method, 0x86, 0x01, 9];
    block.extend(b"localhost");
    block.extend([0x04, length]);
    block.extend(path.as_bytes());
    block
}

/// A request without a body.
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END, stream, &head(GET, path))
}

/// The head of a call over gRPC, whose message may follow or not.
pub fn call(stream: u32, path: &str) -> Vec<u8> {
    let mut block = head(POST, path);
    // `content-type`.
    block.extend([0x0f, 0x10, 16]);
    block.extend(b"application/grpc");
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// A part of a body, in as many frames as it takes.
pub fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(FRAME_BYTES).flat_map(|chunk| frame(DATA, 0, stream, chunk)).collect()
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
    frame(WINDOW_UPDATE, 0, 0, &bytes.to_be_bytes())
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
    }
}
