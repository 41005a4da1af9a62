//! The bytes of everything that records are made of, literally: integers of each width where their length changes, texts, lists, options,
//! variants, what stands within another.
//!
//! Every record on disk and between nodes is made of these. A test that compares two encodings would not see that both changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use bincode::{Decode, Encode};

use super::*;

/// What stands behind the version byte.
fn body(record: &impl Encode) -> Vec<u8> {
    let bytes = encode(record);
    assert_eq!(bytes[0], FORMAT_VERSION);
    assert_eq!(bytes.len(), encoded_len(record));
    bytes[1..].to_vec()
}

fn read<T: Decode<Written>>(bytes: &[u8]) -> Result<T, CodecError> {
    decode_whole(bytes, Written(FORMAT_VERSION))
}

/// There and back, and the bytes are these.
fn pin<T: Encode + Decode<Written> + PartialEq + Debug>(record: &T, bytes: &[u8]) {
    assert_eq!(body(record), bytes, "{record:?}");
    assert_eq!(read::<T>(bytes).as_ref(), Ok(record));
    for end in 0..bytes.len() {
        assert!(read::<T>(&bytes[..end]).is_err(), "{record:?} out of {end} of {} bytes", bytes.len());
    }
}

fn refused<T: Decode<Written> + Debug>(bytes: &[u8]) {
    let read = read::<T>(bytes);
    assert!(matches!(read, Err(CodecError::Malformed(_))), "{bytes:?} gave {read:?}");
}

#[test]
fn a_byte_is_itself_and_a_truth_is_one() {
    for byte in [0_u8, 1, 250, 251, 255] {
        pin(&byte, &[byte]);
    }
    pin(&false, &[0]);
    pin(&true, &[1]);
    refused::<bool>(&[2]);
    pin(&(), &[]);
}

#[test]
fn an_integer_takes_a_byte_up_to_250_and_else_a_mark_and_as_many_bytes_as_hold_it() {
    pin(&0_u16, &[0]);
    pin(&250_u16, &[250]);
    pin(&251_u16, &[251, 251, 0]);
    pin(&256_u16, &[251, 0, 1]);
    pin(&u16::MAX, &[251, 0xFF, 0xFF]);

    pin(&0_u32, &[0]);
    pin(&250_u32, &[250]);
    pin(&251_u32, &[251, 251, 0]);
    pin(&65_535_u32, &[251, 0xFF, 0xFF]);
    pin(&65_536_u32, &[252, 0, 0, 1, 0]);
    pin(&u32::MAX, &[252, 0xFF, 0xFF, 0xFF, 0xFF]);

    pin(&0_u64, &[0]);
    pin(&250_u64, &[250]);
    pin(&251_u64, &[251, 251, 0]);
    pin(&65_535_u64, &[251, 0xFF, 0xFF]);
    pin(&65_536_u64, &[252, 0, 0, 1, 0]);
    pin(&0x0102_0304_u64, &[252, 4, 3, 2, 1]);
    pin(&0xFFFF_FFFF_u64, &[252, 0xFF, 0xFF, 0xFF, 0xFF]);
    pin(&0x1_0000_0000_u64, &[253, 0, 0, 0, 0, 1, 0, 0, 0]);
    pin(&0x0102_0304_0506_0708_u64, &[253, 8, 7, 6, 5, 4, 3, 2, 1]);
    pin(&u64::MAX, &[253, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);

    pin(&0_u128, &[0]);
    pin(&250_u128, &[250]);
    pin(&251_u128, &[251, 251, 0]);
    pin(&65_536_u128, &[252, 0, 0, 1, 0]);
    pin(&u128::from(u64::MAX), &[253, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
    pin(&(1_u128 << 64), &[254, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    let counted = 0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10_u128;
    pin(&counted, &[254, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
    pin(&u128::MAX, &[[254].as_slice(), &[0xFF; 16]].concat());
}

#[test]
fn an_integer_with_a_sign_alternates_round_nought() {
    pin(&0_i64, &[0]);
    pin(&-1_i64, &[1]);
    pin(&1_i64, &[2]);
    pin(&125_i64, &[250]);
    pin(&-126_i64, &[251, 251, 0]);
    pin(&i64::MAX, &[253, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
    pin(&i64::MIN, &[253, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
    pin(&-1_i32, &[1]);
}

#[test]
fn an_integer_with_the_mark_of_a_wider_one_is_refused() {
    refused::<u16>(&[252, 1, 0, 0, 0]);
    refused::<u32>(&[253, 1, 0, 0, 0, 0, 0, 0, 0]);
    refused::<u64>(&[[254, 1].as_slice(), &[0; 15]].concat());
    for bytes in [[255].as_slice(), &[255, 0, 0]] {
        refused::<u16>(bytes);
        refused::<u32>(bytes);
        refused::<u64>(bytes);
        refused::<u128>(bytes);
    }
    // More bytes than it takes are read, though never written.
    assert_eq!(read::<u64>(&[251, 7, 0]), Ok(7));
    assert_eq!(read::<u64>(&[253, 7, 0, 0, 0, 0, 0, 0, 0]), Ok(7));
}

#[test]
fn a_list_and_a_text_are_a_length_and_what_is_in_them() {
    pin(&Vec::<u8>::new(), &[0]);
    pin(&vec![0_u8, 251, 255], &[3, 0, 251, 255]);
    pin(&vec![7_u8; 250], &[[250].as_slice(), &[7; 250]].concat());
    pin(&vec![7_u8; 251], &[[251, 251, 0].as_slice(), &[7; 251]].concat());
    pin(&vec![1_u64, 251, 65_536], &[3, 1, 251, 251, 0, 252, 0, 0, 1, 0]);
    let large = vec![9_u8; 70_000];
    assert_eq!(body(&large)[..5], [252, 0x70, 0x11, 1, 0]);
    assert_eq!(read(&body(&large)), Ok(large));

    pin(&String::new(), &[0]);
    pin(&"é/1".to_owned(), &[4, 0xC3, 0xA9, b'/', b'1']);
    refused::<String>(&[2, 0xC3, 0x28]);
    refused::<Vec<u8>>(&[4, 1, 2, 3]);

    pin(&[1_u8, 2, 3], &[1, 2, 3]);
    pin(&[0xAB_u8; 32], &[0xAB; 32]);
    pin(&BTreeSet::from([300_u64, 2]), &[2, 2, 251, 0x2C, 1]);
    pin(&BTreeMap::from([(1_u64, "b".to_owned()), (0, "a".to_owned())]), &[2, 0, 1, b'a', 1, 1, b'b']);
}

#[test]
fn an_option_is_a_byte_and_what_there_is() {
    pin(&None::<u64>, &[0]);
    pin(&Some(0_u64), &[1, 0]);
    pin(&Some(251_u64), &[1, 251, 251, 0]);
    pin(&Some(None::<u8>), &[1, 0]);
    pin(&Some(vec![1_u8, 2]), &[1, 2, 1, 2]);
    refused::<Option<u8>>(&[2, 0]);
}

#[test]
fn what_is_together_stands_side_by_side() {
    pin(&(1_u8, 251_u64, "a".to_owned()), &[1, 251, 251, 0, 1, b'a']);
    pin(&Box::new(65_536_u32), &[252, 0, 0, 1, 0]);
}

/// Variants count from nought, in the order in which they stand.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
enum Kind {
    Nothing,
    One(u64),
    Two(u8, String),
    Named { at: u32, inner: Option<Box<Kind>> },
}

/// Numbers that the source gives to variants are not written: a variant is its place among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
enum Numbered {
    Small = 3,
    Large = 300,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
struct Inner {
    id: u128,
    kinds: Vec<Kind>,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
struct Tuple(u64);

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
struct Outer {
    first: bool,
    inner: Inner,
    rest: Option<Inner>,
    last: Tuple,
}

#[test]
fn a_variant_is_its_place_and_what_is_in_it() {
    pin(&Kind::Nothing, &[0]);
    pin(&Kind::One(251), &[1, 251, 251, 0]);
    pin(&Kind::Two(9, "b".into()), &[2, 9, 1, b'b']);
    let named = Kind::Named { at: 70_000, inner: Some(Box::new(Kind::Nothing)) };
    pin(&named, &[3, 252, 0x70, 0x11, 1, 0, 1, 0]);
    refused::<Kind>(&[4]);
    refused::<Kind>(&[251, 0, 1]);
    pin(&Numbered::Small, &[0]);
    pin(&Numbered::Large, &[1]);
    refused::<Numbered>(&[3]);
}

#[test]
fn what_stands_within_another_has_no_bytes_of_its_own() {
    let inner = |id| Inner { id, kinds: vec![Kind::One(5), Kind::Nothing] };
    let outer = Outer { first: true, inner: inner(1 << 32), rest: Some(inner(2)), last: Tuple(250) };
    let expected = [[1].as_slice(), &[253, 0, 0, 0, 0, 1, 0, 0, 0], &[2, 1, 5, 0], &[1], &[2], &[2, 1, 5, 0], &[250]];
    pin(&outer, &expected.concat());
}
