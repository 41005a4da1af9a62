//! The frame codec by itself.

use bytes::{BufMut, Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use quorate_node_replica::peer::frame::{
    Frame, FrameBuilder, FrameError, FrameKind, FrameReader, HEADER_BYTES, decode,
};
use quorate_node_replica::peer::raft_codec::{AppendPieces, decode_append};

use crate::support::request;

const BODY_MAX: usize = 64 * 1024;

fn build(id: u64, pieces: &[(bool, Vec<u8>)]) -> (Bytes, Vec<u8>) {
    let mut builder = FrameBuilder::new(FrameKind::Call, id, 0);
    for (shared, piece) in pieces {
        if *shared { builder.put_shared(&Bytes::copy_from_slice(piece)) } else { builder.tail().put_slice(piece) }
    }
    let body = pieces.iter().flat_map(|(_, piece)| piece.iter().copied()).collect();
    (builder.finish().into_bytes(), body)
}

fn pieces() -> impl Strategy<Value = Vec<(bool, Vec<u8>)>> {
    vec((any::<bool>(), prop_oneof![vec(any::<u8>(), 0..40), vec(any::<u8>(), 1_000..3_000)]), 0..6)
}

proptest! {
    #[test]
    fn a_frame_comes_back_from_whatever_pieces_it_was_made(id: u64, pieces in pieces(), cut in 0usize..20_000) {
        let (bytes, body) = build(id, &pieces);
        let mut buffer = BytesMut::from(&bytes[..cut.min(bytes.len() - 1)]);
        prop_assert!(decode(&mut buffer, BODY_MAX).unwrap().is_none(), "decoded a part of a frame");
        buffer.put_slice(&bytes[buffer.len()..]);
        buffer.put_slice(b"more");
        let frame = decode(&mut buffer, BODY_MAX).unwrap().unwrap();
        prop_assert_eq!(frame, Frame { kind: FrameKind::Call, id, body: body.into() });
        prop_assert_eq!(&buffer[..], b"more");
    }

    #[test]
    fn random_bytes_are_refused_without_a_panic(bytes in vec(any::<u8>(), 0..200)) {
        let mut buffer = BytesMut::from(&bytes[..]);
        while let Ok(Some(_)) = decode(&mut buffer, 64) {}
        drop(decode_append(&Bytes::from(bytes)));
    }

    #[test]
    fn a_flipped_bit_is_noticed(pieces in pieces(), at: prop::sample::Index, bit in 0u8..8) {
        let (bytes, _) = build(9, &pieces);
        let mut damaged = BytesMut::from(&bytes[..]);
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << bit;
        let decoded = decode(&mut damaged, BODY_MAX);
        prop_assert!(!matches!(decoded, Ok(Some(_))), "byte {at} bit {bit}: {decoded:?}");
    }

    #[test]
    fn an_append_request_comes_back_in_pieces_that_join(sizes in vec(0usize..400_000, 0..8), copies in 1u64..3) {
        let mut whole = request(5, 5, 0);
        for (at, size) in sizes.iter().enumerate() {
            whole.entries.push(crate::support::entry(5 + at as u64, size * copies as usize));
        }
        let mut pieces = AppendPieces::new(whole.clone());
        let (mut entries, mut prev) = (Vec::new(), whole.prev_log_id);
        while let Some(frame) = pieces.next(FrameKind::AppendNext, 1) {
            let bytes = frame.into_bytes();
            let piece = decode_append(&bytes.slice(HEADER_BYTES..)).unwrap();
            prop_assert_eq!((piece.vote, piece.leader_commit), (whole.vote, whole.leader_commit));
            prop_assert_eq!(piece.prev_log_id, prev);
            prop_assert!(piece.entries.len() == 1 || bytes.len() < 1_100_000, "a piece of {} bytes", bytes.len());
            prev = piece.entries.last().map(|entry| entry.log_id).or(prev);
            entries.extend(piece.entries);
        }
        prop_assert_eq!(entries, whole.entries);
    }
}

#[tokio::test]
async fn a_frame_over_the_limit_is_refused_by_its_header() {
    let mut bytes = BytesMut::new();
    bytes.put_u32_le(u32::MAX);
    let mut reader = FrameReader::new(&bytes[..], BODY_MAX);
    assert!(matches!(reader.next().await, Err(FrameError::TooLarge { .. })));
}

#[tokio::test]
async fn what_speaks_another_protocol_is_told_by_its_first_bytes() {
    for (bytes, name) in [
        ("POST /v1/kv/a HTTP/1.1\r\n", "HTTP"),
        ("GET / HTTP/1.1\r\n", "HTTP"),
        ("HTTP/1.1 200 OK\r\n", "HTTP"),
        ("PRI * HTTP/2.0\r\n", "HTTP"),
        ("SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
    ] {
        let told = FrameReader::new(bytes.as_bytes(), BODY_MAX).next().await.unwrap_err().to_string();
        assert!(told.contains(&format!("it speaks {name}")), "{bytes}: {told}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_within_a_frame_is_told_from_one_that_ends_between() {
    let (bytes, _) = build(1, &[(false, vec![7; 30])]);
    let mut whole = FrameReader::new(&bytes[..], BODY_MAX);
    assert!(whole.next().await.unwrap().is_some());
    assert!(whole.next().await.unwrap().is_none());
    let mut cut = FrameReader::new(&bytes[..bytes.len() - 1], BODY_MAX);
    assert!(matches!(cut.next().await, Err(FrameError::CutShort)));
}
