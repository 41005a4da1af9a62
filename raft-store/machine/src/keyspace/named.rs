//! Row keys of a name and what follows it: family, escaped name, the rest.
//!
//! Owns how names of any length stand in row keys: escaped (`00` as `00 FF`, then `00 01` as the end), so that rows sort
//! by name, then by the rest, and no name's rows lie between those of another.

use super::strip_family;
use crate::codec::CodecError;

const ZERO: u8 = 0x00;
const ZERO_ESCAPED: u8 = 0xFF;
const END: u8 = 0x01;

/// The part of a row key that all rows of `name` share, with room for `spare` bytes more.
pub fn start(family: u8, name: &[u8], spare: usize) -> Vec<u8> {
    let mut start = Vec::with_capacity(1 + name.len() + 2 + spare);
    start.push(family);
    for &byte in name {
        start.push(byte);
        if byte == ZERO {
            start.push(ZERO_ESCAPED);
        }
    }
    start.extend_from_slice(&[ZERO, END]);
    start
}

/// The part of a row key that all rows share of which the name begins with `prefix`.
pub fn open_start(family: u8, prefix: &[u8]) -> Vec<u8> {
    let mut open = start(family, prefix, 0);
    open.truncate(open.len() - [ZERO, END].len());
    open
}

/// The row key of a name and a number.
pub fn numbered(family: u8, name: &[u8], number: u64) -> Vec<u8> {
    let mut row_key = start(family, name, 8);
    row_key.extend_from_slice(&number.to_be_bytes());
    row_key
}

/// The bounds `[start, end)` of all rows of a name.
pub fn bounds(family: u8, name: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let start = start(family, name, 0);
    let mut end = start.clone();
    *end.last_mut().expect("it ends with END") = END + 1;
    (start, end)
}

/// Takes a row key apart: the name, and what follows it.
pub fn split(row_key: &[u8], family: u8) -> Result<(Vec<u8>, &[u8]), CodecError> {
    let mut rest = strip_family(row_key, family)?;
    let mut name = Vec::with_capacity(rest.len().saturating_sub(2));
    loop {
        match rest {
            [ZERO, ZERO_ESCAPED, tail @ ..] => {
                name.push(ZERO);
                rest = tail;
            }
            [ZERO, END, tail @ ..] => return Ok((name, tail)),
            [byte, tail @ ..] if *byte != ZERO => {
                name.push(*byte);
                rest = tail;
            }
            _ => return Err(CodecError::Malformed("a row key with a name without a proper end".into())),
        }
    }
}

/// Takes the row key of a name and a number apart.
pub fn split_numbered(row_key: &[u8], family: u8) -> Result<(Vec<u8>, u64), CodecError> {
    let (name, rest) = split(row_key, family)?;
    match super::split_u64(rest)? {
        (number, []) => Ok((name, number)),
        (_, rest) => Err(CodecError::Malformed(format!("{} bytes too many in a row key", rest.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_within_the_bounds_of_their_name_alone() {
        let names: [&[u8]; 6] = [b"", b"\0", b"\0\x01", b"a", b"a\0", b"ab"];
        for name in names {
            let row_key = numbered(0x70, name, u64::MAX);
            assert_eq!(split_numbered(&row_key, 0x70), Ok((name.to_vec(), u64::MAX)));
            for other in names {
                let (start, end) = bounds(0x70, other);
                assert_eq!(start <= row_key && row_key < end, name == other, "{name:?} in the bounds of {other:?}");
            }
        }
    }
}
