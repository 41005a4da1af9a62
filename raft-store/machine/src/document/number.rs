//! Numbers: kept as they were written, compared and added exactly.
//!
//! Owns what a JSON number means. A number without fraction and exponent that fits 64 bits, signed or not, is an
//! integer; any other is a double. A document's numbers keep their text until something changes them.

use std::borrow::Cow;
use std::cmp::Ordering;

/// A JSON number in the text it was written in.
///
/// Invariant: the text is a number by the grammar of JSON and finite as a double.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number<'a>(Cow<'a, str>);

/// What a number is worth.
#[derive(Debug, Clone, Copy)]
pub enum Numeric {
    /// An integer between the least `i64` and the greatest `u64`.
    Integer(i128),
    /// Any other number, and integers beyond 64 bits: the nearest double, always finite.
    Float(f64),
}

/// Why two numbers have no sum: an integer beyond 64 bits, or a double beyond the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow;

impl<'a> Number<'a> {
    /// Text that the parser found to be a number; `None` where it is beyond the greatest double.
    pub(super) fn from_checked(text: &'a str) -> Option<Self> {
        // 308 digits are finite without looking; a division costs more than this test.
        let is_plain = text.len() <= 308 && !text.contains(['e', 'E']);
        (is_plain || parse_float(text).is_finite()).then_some(Self(Cow::Borrowed(text)))
    }

    /// Text that the parser found to be digits only, and not many.
    pub(super) fn from_digits(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// The number of a sign that is furthest from zero: what stands for one that is beyond every double.
    pub(super) fn furthest(is_negative: bool) -> Self {
        let float = if is_negative { f64::MIN } else { f64::MAX };
        Self(Cow::Owned(format!("{float:?}")))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What it is worth.
    pub fn value(&self) -> Numeric {
        if let Some(integer) = short_integer(self.0.as_bytes()) {
            return Numeric::Integer(integer.into());
        }
        match self.0.parse::<i128>() {
            Ok(integer) if is_64_bit(integer) => Numeric::Integer(integer),
            _ => Numeric::Float(parse_float(&self.0)),
        }
    }

    /// The exact sum. Two integers make an integer or overflow, never a wrap and never a double; with a fraction on
    /// either side the sum is a double.
    pub fn add(&self, other: &Number<'_>) -> Result<Number<'static>, Overflow> {
        if self.is_too_long_for_an_integer() || other.is_too_long_for_an_integer() {
            return Err(Overflow);
        }
        match (self.value(), other.value()) {
            (Numeric::Integer(a), Numeric::Integer(b)) => {
                // Both have at most 65 bits.
                Some(a + b).filter(|sum| is_64_bit(*sum)).map(|sum| Number(Cow::Owned(sum.to_string()))).ok_or(Overflow)
            }
            (a, b) => Number::from_float(a.to_float() + b.to_float()).ok_or(Overflow),
        }
    }

    /// A double as the shortest text that reads back as the same; `None` where it is not finite.
    pub fn from_float(float: f64) -> Option<Number<'static>> {
        float.is_finite().then(|| Number(Cow::Owned(format!("{float:?}"))))
    }

    /// Borrows the text.
    pub(super) fn borrowed(&self) -> Number<'_> {
        Number(Cow::Borrowed(&self.0))
    }

    /// Copies the text.
    pub(super) fn into_owned(self) -> Number<'static> {
        Number(Cow::Owned(self.0.into_owned()))
    }

    /// Whether it is written as an integer but has more than 64 bits, so that adding to it could only be inexact.
    fn is_too_long_for_an_integer(&self) -> bool {
        !self.0.contains(['.', 'e', 'E']) && matches!(self.value(), Numeric::Float(_))
    }
}

impl From<u64> for Number<'static> {
    fn from(value: u64) -> Self {
        Self(Cow::Owned(value.to_string()))
    }
}

impl Numeric {
    /// Compares by value, without rounding either side.
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            (Self::Integer(a), Self::Float(b)) => integer_to_float(a, b),
            (Self::Float(a), Self::Integer(b)) => integer_to_float(b, a).reverse(),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(&b).expect("both are finite"),
        }
    }

    /// The nearest double.
    #[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
    fn to_float(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Float(float) => float,
        }
    }
}

/// Reads a few digits, as most numbers are: conditions read one for each element of a list, and reading into 128 bits takes several times as long.
fn short_integer(text: &[u8]) -> Option<u64> {
    /// Most digits that always fit 64 bits.
    const SHORT: usize = 18;
    if text.len() > SHORT {
        return None;
    }
    let mut value = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = 10 * value + u64::from(digit);
    }
    // The grammar allows no number without digits.
    Some(value)
}

fn is_64_bit(integer: i128) -> bool {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&integer)
}

fn parse_float(text: &str) -> f64 {
    text.parse().expect("a JSON number is in the grammar of f64")
}

/// Compares a 64-bit integer with a finite double: first the whole part, which has an exact integer, then the rest.
fn integer_to_float(integer: i128, float: f64) -> Ordering {
    // Twice the greatest u64: what is beyond is decided by its sign, and below it the cast is exact.
    const BEYOND: f64 = 3.7e19;
    if float.abs() > BEYOND {
        return if float > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    #[expect(clippy::cast_possible_truncation, reason = "truncated before, and within bounds")]
    let whole = float.trunc() as i128;
    integer.cmp(&whole).then_with(|| 0.0.partial_cmp(&float.fract()).expect("both are finite"))
}
