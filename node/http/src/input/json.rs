//! Strict JSON: what two readers could understand differently is refused.
//!
//! Owns the check of every JSON text that comes in: grammar, UTF-8, depth, duplicate object keys, numbers that fit. The
//! text itself is kept as it was sent. Uses serde_json's own parser for all but one thing: it rounds long numbers as it likes, so whether
//! one near the greatest double fits is judged by the parser that reads what is stored.

use std::borrow::Cow;
use std::fmt;

use quorate_machine::document::{Json, JsonError};
use quorate_machine::limits::JSON_DEPTH_MAX;
use quorate_machine::mutants::Mutant;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Why a text was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonFault {
    /// JSON pointer to where it is.
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
}

/// From here on a number is judged exactly. The greatest double is 1.7976931348623157e308, and serde_json is wrong by a few units in
/// the last place.
const NEAR_GREATEST: f64 = 1.797e308;

/// Strips the whitespace that JSON allows around a text.
pub fn trim(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// Checks a whole text.
pub fn check(text: &[u8]) -> Result<(), JsonFault> {
    let mut walk = Walk { keys: Vec::new(), trail: Vec::new(), has_huge: false };
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let outcome = Value { walk: &mut walk, depth: 0 }.deserialize(&mut deserializer).and_then(|()| deserializer.end());
    outcome.map_err(|error| JsonFault { pointer: walk.pointer(), detail: error.to_string() })?;
    let is_judged = walk.has_huge && !Mutant::GreatNumbersAreNotRead.acts();
    if is_judged { judge_numbers(text) } else { Ok(()) }
}

/// Whether those who read what is stored can read all numbers of a text.
fn judge_numbers(text: &[u8]) -> Result<(), JsonFault> {
    let detail = match Json::parse(text) {
        Ok(_) => return Ok(()),
        Err(JsonError::NumberOutOfRange(at)) => {
            format!("byte {at}: the number is out of range; the greatest is 1.7976931348623157e308")
        }
        Err(error) => error.to_string(),
    };
    Err(JsonFault { pointer: String::new(), detail })
}

/// What the visitors share.
struct Walk<'de> {
    /// Keys of all objects that are open at the moment, one object after the other: no allocation for each object.
    keys: Vec<Cow<'de, str>>,
    /// Where a fault is, innermost first; filled in only while an error travels outwards.
    trail: Vec<String>,
    /// Whether there was a number near the greatest double, or beyond it.
    has_huge: bool,
}

impl Walk<'_> {
    fn pointer(&self) -> String {
        self.trail.iter().rev().map(|segment| format!("/{}", escape(segment))).collect()
    }
}

/// A segment of a JSON pointer (RFC 6901).
pub fn escape(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

/// The JSON pointer to a field that may have any name, cut where that is long.
pub fn pointer(name: &str) -> String {
    format!("/{}", escape(name).chars().take(80).collect::<String>())
}

struct Value<'w, 'de> {
    walk: &'w mut Walk<'de>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Value<'_, 'de> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.walk.has_huge |= number.abs() >= NEAR_GREATEST;
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let depth = deeper(self.depth)?;
        let mut index = 0usize;
        loop {
            match items.next_element_seed(Value { walk: self.walk, depth }) {
                Ok(Some(())) => index += 1,
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.walk.trail.push(index.to_string());
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let depth = deeper(self.depth)?;
        let start = self.walk.keys.len();
        while let Some(key) = fields.next_key_seed(Text)? {
            let at = self.walk.keys.len();
            self.walk.keys.push(key);
            if let Err(error) = fields.next_value_seed(Value { walk: self.walk, depth }) {
                let segment = self.walk.keys[at].as_ref().to_owned();
                self.walk.trail.push(segment);
                return Err(error);
            }
        }
        if let Some(key) = duplicate(&mut self.walk.keys[start..]) {
            self.walk.trail.push(key);
            return Err(A::Error::custom("the object has this key more than once"));
        }
        self.walk.keys.truncate(start);
        Ok(())
    }
}

fn deeper<E: Error>(depth: usize) -> Result<usize, E> {
    if depth == JSON_DEPTH_MAX {
        return Err(E::custom(format!("nested deeper than {JSON_DEPTH_MAX} levels")));
    }
    Ok(depth + 1)
}

/// A key that occurs twice. Sorts, so that a hostile object of many keys costs no quadratic time.
fn duplicate(keys: &mut [Cow<'_, str>]) -> Option<String> {
    if keys.len() < 2 {
        return None;
    }
    keys.sort_unstable();
    keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0].as_ref().to_owned())
}

/// A string, borrowed from the text where it has no escapes.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// The fields of an object in the order of the text, their values unparsed. The text is JSON then, though not yet strict:
/// what [`check`] refuses beyond the grammar may be in it.
pub fn fields(text: &[u8]) -> Result<Vec<(Cow<'_, str>, &RawValue)>, JsonFault> {
    struct Fields;
    impl<'de> Visitor<'de> for Fields {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut list = Vec::with_capacity(6);
            while let Some(key) = map.next_key_seed(Text)? {
                list.push((key, map.next_value()?));
            }
            Ok(list)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    serde::Deserializer::deserialize_map(&mut deserializer, Fields)
        .and_then(|list| deserializer.end().map(|()| list))
        .map_err(|error| JsonFault { pointer: String::new(), detail: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer_of(text: &str) -> String {
        check(text.as_bytes()).expect_err(text).pointer
    }

    #[test]
    fn duplicate_keys_are_found_at_any_depth_and_however_they_are_written() {
        assert_eq!(pointer_of(r#"{"a":1,"b":2,"a":3}"#), "/a");
        assert_eq!(pointer_of(r#"{"x":[0,{"k/~":1,"\u006b/~":2}]}"#), "/x/1/k~1~0");
        assert_eq!(check(br#"{"a":{"b":1},"b":{"a":1},"c":[{"a":1},{"a":2}]}"#), Ok(()));
    }

    #[test]
    fn depth_is_limited_exactly() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(check(nested(JSON_DEPTH_MAX).as_bytes()), Ok(()));
        for depth in [JSON_DEPTH_MAX + 1, 300, 100_000] {
            let fault = check(nested(depth).as_bytes()).expect_err("too deep");
            assert!(fault.detail.contains("nested deeper than 64"), "{}", fault.detail);
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        let bad: [&[u8]; 12] = [
            b"",
            b"{",
            b"{'a':1}",
            b"[1,]",
            b"1e999",
            b"\"\\ud800\"",
            b"\"\xff\"",
            b"nul",
            b"1 2",
            b"\xef\xbb\xbf1",
            b"{\0\"\0",
            b"NaN",
        ];
        for text in bad {
            assert!(check(text).is_err(), "{}", text.escape_ascii());
        }
        for good in ["null", "0", "-1.5e3", "\"\\u00fc\"", "{}", "[]", " [1] "] {
            assert_eq!(check(good.as_bytes()), Ok(()), "{good}");
        }
    }

    #[test]
    fn a_number_that_the_readers_of_entries_cannot_read_is_refused() {
        let (mut refused, mut taken) = (0, 0);
        for digits in 0..2_000u32 {
            for form in
                ["1.7976931348623EEEEe308", "[{\"a\":-1797693134862.3EEEE9E+296}]", "0.000017976931348623EEEE99e313"]
            {
                let text = form.replace("EEEE", &(1_000 + digits).to_string());
                let read = Json::parse(text.as_bytes()).map(drop);
                // serde_json refuses a few of the greatest that would fit: that harms nobody.
                let is_taken = check(text.as_bytes()).is_ok();
                assert!(read.is_ok() || !is_taken, "{text}: {read:?}");
                if is_taken { taken += 1 } else { refused += 1 }
            }
        }
        assert!(refused > 0 && taken > 0, "{refused} and {taken}");
        for text in ["1.79769313486231581e308", "1.797693134862315899e308", "[0,-1.79769313486231585E+308]", "1e309"] {
            let fault = check(text.as_bytes()).expect_err(text);
            assert!(fault.detail.contains("out of range"), "{}", fault.detail);
        }
        for text in ["1.7976931348623157e308", "-1.7976931348623157e308", "[1e308,5e-324,-0.0]"] {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
        }
    }

    #[test]
    fn trim_takes_only_what_json_calls_whitespace() {
        assert_eq!(trim(b" \n{} \t\r\n"), b"{}");
        assert_eq!(trim(b"  "), b"");
        assert_eq!(trim("\u{a0}1".as_bytes()), "\u{a0}1".as_bytes());
    }
}
