//! Seeded changes of bytes: flipped bits, cuts, splices, and numbers at their extremes where lengths may stand.
//!
//! Owns how a value is spoiled. Knows no format.

use rand::RngExt;
use rand::rngs::StdRng;

/// Longest value that is made.
pub const BYTES_MAX: usize = 16 * 1024;

const NUMBERS: [u64; 14] = [
    0,
    1,
    0x7f,
    0xfa,
    0xfb,
    0xff,
    0x100,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    u64::MAX,
];

/// Changes the bytes in one to four ways. `others` are values of the same kind, to take parts of.
pub fn mutate(dice: &mut StdRng, bytes: &mut Vec<u8>, others: &[Vec<u8>]) {
    for _ in 0..dice.random_range(1..=4) {
        change(dice, bytes, others);
    }
    bytes.truncate(BYTES_MAX);
}

fn change(dice: &mut StdRng, bytes: &mut Vec<u8>, others: &[Vec<u8>]) {
    if bytes.is_empty() {
        bytes.push(dice.random());
    }
    let at = dice.random_range(0..bytes.len());
    match dice.random_range(0..10) {
        0 | 1 => bytes[at] ^= 1 << dice.random_range(0..8),
        2 => bytes[at] = dice.random(),
        3 => bytes[at] = bytes[at].wrapping_add(if dice.random() { 1 } else { u8::MAX }),
        4 => bytes.truncate(at),
        5 => {
            let end = (at + dice.random_range(1..=16)).min(bytes.len());
            bytes.drain(at..end);
        }
        6 => put_number(dice, bytes, at),
        7 => {
            let end = (at + dice.random_range(1..=64)).min(bytes.len());
            let piece = bytes[at..end].to_vec();
            let to = dice.random_range(0..=bytes.len());
            bytes.splice(to..to, piece);
        }
        8 => {
            let piece: Vec<u8> = (0..dice.random_range(1..=8)).map(|_| dice.random()).collect();
            bytes.splice(at..at, piece);
        }
        _ => splice(dice, bytes, at, others),
    }
}

/// A number of any width and order, over what stands there.
fn put_number(dice: &mut StdRng, bytes: &mut Vec<u8>, at: usize) {
    let number = NUMBERS[dice.random_range(0..NUMBERS.len())];
    let width = 1 << dice.random_range(0..=3);
    let written = match dice.random() {
        true => number.to_le_bytes()[..width].to_vec(),
        false => number.to_be_bytes()[8 - width..].to_vec(),
    };
    let end = (at + width).min(bytes.len());
    bytes.splice(at..end, written);
}

/// A stretch of another value in the place of one of this.
fn splice(dice: &mut StdRng, bytes: &mut Vec<u8>, at: usize, others: &[Vec<u8>]) {
    let Some(other) = others.get(dice.random_range(0..others.len().max(1))).filter(|other| !other.is_empty()) else {
        return;
    };
    let start = dice.random_range(0..other.len());
    let end = dice.random_range(start..=other.len().min(start + 256));
    let until = dice.random_range(at..=bytes.len());
    bytes.splice(at..until, other[start..end].iter().copied());
}
