//! The order of JSON values, and bytes that sort the same way.
//!
//! Owns when two values are the same, which of two comes first, and the form in which a scalar stands in an index key.
//! Kinds sort as null, false, true, numbers, strings, arrays, objects. Numbers sort by value, exactly, however they are
//! written; strings by their UTF-8 bytes; arrays item by item; objects by their members sorted by name.

use std::cmp::Ordering;

use super::json::{Json, Object};
use super::number::Numeric;
use super::steps::Steps;

/// Whether two values are the same to a user: `1` is `1.0`, and the order of members does not matter. The same as
/// [`compare`] finding them equal, but quick to see that they are not. (It takes objects for different that differ in
/// how often they repeat a name, which the API refuses.)
pub fn same(a: &Json<'_>, b: &Json<'_>) -> bool {
    same_within(a, b, &Steps::unbounded())
}

/// [`same`] within a bound of steps; `false` also beyond it.
pub(crate) fn same_within(a: &Json<'_>, b: &Json<'_>, steps: &Steps) -> bool {
    match (a, b) {
        (Json::String(a), Json::String(b)) => a == b,
        (Json::Number(a), Json::Number(b)) => {
            a == b || (steps.take_number(a) && steps.take_number(b) && a.value().compare(b.value()).is_eq())
        }
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && steps.take_elements(a.len()) && a.iter().zip(b).all(|(a, b)| same_within(a, b, steps))
        }
        (Json::Object(a), Json::Object(b)) if a.len() != b.len() => false,
        (Json::Object(a), Json::Object(b)) => {
            if !steps.take_sorting(a) || !steps.take_sorting(b) {
                return false;
            }
            let (a, b) = (sorted(a), sorted(b));
            let mut pairs = a.iter().zip(&b);
            a.len() == b.len() && pairs.all(|((name_a, a), (name_b, b))| name_a == name_b && same_within(a, b, steps))
        }
        (a, b) => rank(a) == rank(b),
    }
}

/// Which comes first.
pub fn compare(a: &Json<'_>, b: &Json<'_>) -> Ordering {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a.value().compare(b.value()),
        (Json::String(a), Json::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Json::Array(a), Json::Array(b)) => compare_all(a.iter(), b.iter(), compare),
        (Json::Object(a), Json::Object(b)) => {
            compare_all(sorted(a).into_iter(), sorted(b).into_iter(), |(name_a, a), (name_b, b)| {
                name_a.as_bytes().cmp(name_b.as_bytes()).then_with(|| compare(a, b))
            })
        }
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

/// Appends a scalar's index form; `false` for an array or object, which have none, and nothing is appended.
///
/// No form is the start of another, so several in a row sort as a composite key. A number is the greatest double
/// not above it, made sortable, then how far above it is: so an integer that no double has lies between its neighbours,
/// and `1` and `1.0` are the same bytes.
pub fn encode_scalar(value: &Json<'_>, out: &mut Vec<u8>) -> bool {
    out.push(tag(value));
    match value {
        Json::Null | Json::Bool(_) => {}
        Json::Number(number) => encode_number(number.value(), out),
        Json::String(text) => encode_text(text.as_bytes(), out),
        Json::Array(_) | Json::Object(_) => {
            out.pop();
            return false;
        }
    }
    true
}

/// Appends the form by which a field of any value sorts: a missing one stands before all others; arrays and objects, which
/// have no index form, stand behind all scalars, each kind for itself. As with [`encode_scalar`], no form is the start of
/// another.
pub fn encode_sort(value: Option<&Json<'_>>, out: &mut Vec<u8>) {
    match value {
        None => out.push(MISSING_TAG),
        Some(value) if encode_scalar(value, out) => {}
        Some(tree) => out.push(tag(tree)),
    }
}

/// Appends the form by which a name sorts: where it is a text, the one of that.
pub fn encode_name(name: &[u8], out: &mut Vec<u8>) {
    out.push(STRING_TAG);
    encode_text(name, out);
}

/// What stands behind one form of [`encode_sort`]; `None` where none stands at the start.
pub fn skip_sort(bytes: &[u8]) -> Option<&[u8]> {
    let (tag, rest) = bytes.split_first()?;
    match tag {
        &MISSING_TAG | 0x10 | 0x20 | 0x30 | 0x60 | 0x70 => Some(rest),
        0x40 => rest.get(NUMBER_BYTES..),
        &STRING_TAG => skip_text(rest),
        _ => None,
    }
}

fn skip_text(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let zero = bytes.iter().position(|byte| *byte == 0)?;
        let escape = *bytes.get(zero + 1)?;
        bytes = &bytes[zero + 2..];
        match escape {
            TEXT_END => return Some(bytes),
            ZERO_ESCAPED => {}
            _ => return None,
        }
    }
}

/// A double and how far above it.
const NUMBER_BYTES: usize = 8 + 2;

/// Behind a zero: that it is one of the text, or that the text ends.
const ZERO_ESCAPED: u8 = 0xFF;
const TEXT_END: u8 = 0x01;

/// The [`tag`] of strings.
const STRING_TAG: u8 = 0x50;

/// What [`encode_sort`] writes for no value; below every [`tag`].
const MISSING_TAG: u8 = 0x08;

/// Place of a kind among the kinds.
fn rank(value: &Json<'_>) -> u8 {
    match value {
        Json::Null => 0,
        Json::Bool(false) => 1,
        Json::Bool(true) => 2,
        Json::Number(_) => 3,
        Json::String(_) => 4,
        Json::Array(_) => 5,
        Json::Object(_) => 6,
    }
}

/// First byte of the index form. On disk; what lies between is free for what sorts around values.
fn tag(value: &Json<'_>) -> u8 {
    0x10 + 0x10 * rank(value)
}

fn compare_all<T>(
    mut a: impl Iterator<Item = T>,
    mut b: impl Iterator<Item = T>,
    compare: impl Fn(T, T) -> Ordering,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (Some(a), Some(b)) => match compare(a, b) {
                Ordering::Equal => {}
                unequal => return unequal,
            },
            (a, b) => return a.is_some().cmp(&b.is_some()),
        }
    }
}

/// The members that count, by name.
fn sorted<'o, 'a>(object: &'o Object<'a>) -> Vec<(&'o str, &'o Json<'a>)> {
    object.by_name().into_iter().map(|(name, at)| (name, &object.members[at].1)).collect()
}

fn encode_number(number: Numeric, out: &mut Vec<u8>) {
    let (floor, above) = match number {
        Numeric::Float(float) => (float, 0),
        Numeric::Integer(integer) => floor_of(integer),
    };
    // Zero has one form, not two.
    let bits = if floor == 0.0 { 0 } else { floor.to_bits() };
    let sortable = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    out.extend_from_slice(&sortable.to_be_bytes());
    out.extend_from_slice(&above.to_be_bytes());
}

/// The greatest double not above a 64-bit integer, and the difference.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "what is lost is the difference returned"
)]
fn floor_of(integer: i128) -> (f64, u16) {
    let nearest = integer as f64;
    let floor = if nearest as i128 > integer { nearest.next_down() } else { nearest };
    let above = integer - floor as i128;
    // Neighbouring doubles below 2^64 are at most 2^11 apart.
    (floor, u16::try_from(above).unwrap_or_else(|_| unreachable!("{integer} is {above} above the double {floor}")))
}

/// Escapes `00` as `00 FF` and ends with `00 01`, as the keys of history rows do.
fn encode_text(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        out.push(byte);
        if byte == 0 {
            out.push(ZERO_ESCAPED);
        }
    }
    out.extend_from_slice(&[0, TEXT_END]);
}
