//! HTTP/2 written by hand, for what no HTTP/2 client would do.
//!
//! Owns the few frames that attacks need. Never reads an answer.

const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const WINDOW_UPDATE: u8 = 8;
/// No more headers, and no body.
const END: u8 = 0x4 | 0x1;
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

/// A request without a body. Names by their number in the static table of HPACK, values as they are; paths are shorter than 127 bytes.
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    let length = u8::try_from(path.len()).ok().filter(|length| *length < 127).expect("a short path");
    // `:method: GET`, `:scheme: http`, `:authority: localhost`, `:path`.
    let mut block = vec![0x82, 0x86, 0x01, 9];
    block.extend(b"localhost");
    block.extend([0x04, length]);
    block.extend(path.as_bytes());
    frame(HEADERS, END, stream, &block)
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
        assert!(begin(0).ends_with(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]));
    }
}
