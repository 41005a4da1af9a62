//! Values to the type that a field is declared with.
//!
//! Owns which values a type takes and what becomes of them. Exact: what would lose a digit is not taken. Only times are
//! cut, to the milliseconds that the type has.

use std::borrow::Cow;

use super::field::FieldKind;
use crate::document::{Json, time};
use crate::entry::WallMillis;

/// A value that has no form of the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfit;

/// What a value becomes; `None` where it is of the type as it stands.
///
/// | type | takes as it is | converts |
/// |---|---|---|
/// | any | everything | |
/// | boolean | booleans | `"true"`, `"false"` |
/// | long | whole numbers of 64 bits written so | `1.0`, `1e3`; a string that is such a number, in its shortest form |
/// | double | numbers | a string that is a JSON number |
/// | varchar | strings | numbers, to the text they are written with; booleans |
/// | datetime | RFC 3339 in UTC with milliseconds | RFC 3339 otherwise; whole numbers, as Unix milliseconds; fourteen digits in a string, as UTC |
/// | object, array | their own kind | |
///
/// Null is of every type.
pub(super) fn convert(kind: FieldKind, value: &Json<'_>) -> Result<Option<Json<'static>>, Unfit> {
    match (kind, value) {
        (_, Json::Null)
        | (FieldKind::Any, _)
        | (FieldKind::Boolean, Json::Bool(_))
        | (FieldKind::Double, Json::Number(_))
        | (FieldKind::Varchar, Json::String(_))
        | (FieldKind::Object, Json::Object(_))
        | (FieldKind::Array, Json::Array(_)) => Ok(None),
        (FieldKind::Boolean, Json::String(text)) => to_boolean(text).map(Some),
        (FieldKind::Long, Json::Number(number)) => to_long(number.as_str()),
        (FieldKind::Long, Json::String(text)) => decimal(text).map(Some),
        (FieldKind::Double, Json::String(text)) => number(text).map(Some),
        (FieldKind::Varchar, Json::Number(number)) => Ok(Some(string(number.as_str().to_owned()))),
        (FieldKind::Varchar, Json::Bool(value)) => Ok(Some(string(value.to_string()))),
        (FieldKind::Datetime, Json::String(text)) => to_datetime(text),
        (FieldKind::Datetime, Json::Number(number)) => unix_ms(number.as_str()).map(Some),
        _ => Err(Unfit),
    }
}

/// The wall clock as a value of a type; `None` for types that have none.
pub(super) fn wall_clock(kind: FieldKind, wall: WallMillis) -> Option<Json<'static>> {
    match kind {
        FieldKind::Datetime => Some(string(time::format(wall))),
        FieldKind::Long | FieldKind::Double => Some(Json::Number(wall.into())),
        _ => None,
    }
}

fn string(text: String) -> Json<'static> {
    Json::String(Cow::Owned(text))
}

fn to_boolean(text: &str) -> Result<Json<'static>, Unfit> {
    match text {
        "true" => Ok(Json::Bool(true)),
        "false" => Ok(Json::Bool(false)),
        _ => Err(Unfit),
    }
}

fn to_long(text: &str) -> Result<Option<Json<'static>>, Unfit> {
    if !text.contains(['.', 'e', 'E']) {
        return exact_integer(text).map(|_| None);
    }
    number(&exact_integer(text)?.to_string()).map(Some)
}

/// A string that is a whole number in its shortest form: `007` and `+5` are more than numbers to somebody.
fn decimal(text: &str) -> Result<Json<'static>, Unfit> {
    let integer = text.parse::<i128>().ok().filter(|integer| is_64_bit(*integer) && integer.to_string() == text);
    integer.ok_or(Unfit).and_then(|_| number(text))
}

fn number(text: &str) -> Result<Json<'static>, Unfit> {
    match Json::parse(text.as_bytes()) {
        // The parser takes blanks around it, which are more than a number.
        Ok(json @ Json::Number(_)) if json.text_bytes() == text.len() => Ok(json.into_owned()),
        _ => Err(Unfit),
    }
}

fn to_datetime(text: &str) -> Result<Option<Json<'static>>, Unfit> {
    let nanos = time::parse(text).or_else(|| time::parse_compact(text)).ok_or(Unfit)?;
    let formatted = time::from_unix_nanos(nanos).ok_or(Unfit)?;
    Ok((formatted != text).then(|| string(formatted)))
}

fn unix_ms(text: &str) -> Result<Json<'static>, Unfit> {
    format_ms(exact_integer(text)?).map(string)
}

fn format_ms(ms: i128) -> Result<String, Unfit> {
    i64::try_from(ms).ok().and_then(time::from_unix_ms).ok_or(Unfit)
}

/// The whole number of 64 bits that a JSON number is, by its digits and without a double on the way.
fn exact_integer(number: &str) -> Result<i128, Unfit> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    if matches!(significant, "" | "-") {
        return Ok(0);
    }
    let zeros = (digits.len() - significant.len()) as i128;
    let shift = i128::from(exponent.parse::<i64>().map_err(|_| Unfit)?) + zeros - fraction.len() as i128;
    // 64 bits are at most 20 digits.
    let power = u32::try_from(shift).ok().filter(|shift| *shift < 20).ok_or(Unfit)?;
    let integer = significant.parse::<i128>().ok().and_then(|digits| digits.checked_mul(10_i128.pow(power)));
    integer.filter(|integer| is_64_bit(*integer)).ok_or(Unfit)
}

fn is_64_bit(integer: i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&integer)
}
