//! How arguments are read: durations, values, request ids. Pure, but for values that stand in a file or on standard input.

use std::convert::Infallible;
use std::io::Read;
use std::time::Duration;

use quorate_client::api::{Moment, Name};
use quorate_client::{Cas, RequestId, Value};

use crate::fail::Failed;

/// Largest value read from a file or standard input; nodes take less.
const VALUE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A name of an entry, or what names begin with, as lists show it: `\xff` is a byte.
pub fn name(text: &str) -> Result<Name, Infallible> {
    Ok(Name::from_shown(text))
}

/// `500ms`, `10s`, `2m`, `1h`, or a sum of those like `1m30s`. A bare number is refused: it would be a guess.
pub fn duration(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str = "expected a time like 500ms, 10s, 2m or 1h30m";
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(EXPECTED)?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        let number: u64 = rest[..digits].parse().map_err(|_| EXPECTED)?;
        let millis = match &rest[digits..unit_end] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(EXPECTED.into()),
        };
        let part = number.checked_mul(millis).map(Duration::from_millis);
        total = part.and_then(|part| total.checked_add(part)).ok_or("too long a time")?;
        rest = &rest[unit_end..];
    }
    if text.is_empty() { Err(EXPECTED.into()) } else { Ok(total) }
}

/// `0/4`: one of several parts, from 0, and how many there are.
pub fn part(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((index, of)) if index < of => Ok((index, of)),
        _ => Err("expected a part like 0/4, from 0/4 to 3/4".into()),
    }
}

/// A duration that is not zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be more than nothing".into()),
        duration => Ok(duration),
    }
}

/// A time to live of what is written. One that was reckoned and came to nothing must not become for ever.
pub fn ttl(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => {
            Err("must be more than nothing: zero would be for ever, as `quorate touch KEY --ttl 0s` says it".into())
        }
        duration => Ok(duration),
    }
}

/// A moment: RFC 3339, which nodes check, or Unix milliseconds.
pub fn moment(text: &str) -> Result<Moment, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match is_number {
        true => text.parse().map(Moment::UnixMs).map_err(|_| "far too late for a time in milliseconds".into()),
        false => Ok(Moment::from(text)),
    }
}

/// A request id.
pub fn request_id(text: &str) -> Result<RequestId, String> {
    text.parse().map_err(|error: quorate_client::Error| error.to_string())
}

/// A cas token; the quotes of an ETag may stand round it.
pub fn cas(text: &str) -> Result<Cas, String> {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    inner.parse().map_err(|_| "expected the decimal number that `get` shows as cas".into())
}

/// How a VALUE argument is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
#[group(multiple = false)]
pub struct Meaning {
    /// Take VALUE as text and store it as a JSON string.
    #[arg(long)]
    pub string: bool,
    /// Take VALUE as bytes and store it as it is.
    #[arg(long)]
    pub bytes: bool,
}

/// A VALUE argument: the text itself, `-` for standard input, `@PATH` for a file. JSON unless said otherwise; never
/// guessed, so that `put k true` and `put k "$x"` mean the same whatever stands in them.
pub fn value(argument: &str, meaning: Meaning) -> Result<Value, Failed> {
    let (data, origin) = load(argument)?;
    if meaning.bytes {
        return Ok(Value::bytes(data));
    }
    let text = String::from_utf8(data)
        .map_err(|_| Failed::usage(format!("{origin} is not UTF-8 text; store it as bytes with --bytes")))?;
    text_value(&text, meaning, &origin)
}

/// A text as JSON, or as a JSON string where that is meant.
pub fn text_value(text: &str, meaning: Meaning, origin: &str) -> Result<Value, Failed> {
    if meaning.string {
        return Ok(Value::json(&text)?);
    }
    match serde_json::from_str::<&serde_json::value::RawValue>(text) {
        Ok(json) => Ok(Value::json_text(json.get().to_owned())),
        Err(error) => Err(Failed::usage(format!(
            "{origin} is not JSON: {error}\n  To store it as a JSON string: --string. As bytes: --bytes."
        ))),
    }
}

/// The text of a file, or of `@PATH`, or `-` for standard input; JSON stands for itself, as in other arguments.
pub fn file(path: &str) -> Result<String, Failed> {
    let is_itself = path == "-" || path.trim_start().starts_with(['{', '[']) || path.starts_with('@');
    let (data, origin) = load(if is_itself { path.to_owned() } else { format!("@{path}") }.as_str())?;
    String::from_utf8(data).map_err(|_| Failed::usage(format!("{origin} is not UTF-8 text")))
}

/// A patch: JSON, `-` or `@PATH`.
pub fn patch(argument: &str) -> Result<Value, Failed> {
    value(argument, Meaning { string: false, bytes: false })
}

/// What an argument stands for: the text itself, `-` for standard input, `@PATH` for a file.
pub fn argument(argument: &str) -> Result<Vec<u8>, Failed> {
    load(argument).map(|(data, _)| data)
}

fn load(argument: &str) -> Result<(Vec<u8>, String), Failed> {
    let (data, origin) = if argument == "-" {
        (read(std::io::stdin().lock()), "standard input".to_owned())
    } else if let Some(path) = argument.strip_prefix('@') {
        (std::fs::File::open(path).and_then(read), format!("`{path}`"))
    } else {
        (Ok(argument.as_bytes().to_vec()), "VALUE".to_owned())
    };
    match data {
        Ok(data) => Ok((data, origin)),
        Err(error) => Err(Failed::usage(format!("cannot read {origin}: {error}"))),
    }
}

fn read(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut data = Vec::new();
    from.take(VALUE_BYTES_MAX + 1).read_to_end(&mut data)?;
    if data.len() as u64 > VALUE_BYTES_MAX {
        return Err(std::io::Error::other(format!("more than {VALUE_BYTES_MAX} bytes")));
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_add_up() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1h2m3s"), Ok(Duration::from_secs(3_723)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for bad in ["", "10", "s", "10 s", "1.5s", "-1s", "10sec", "99999999999999999999s", "18446744073709551615d"] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
        assert!(positive_duration("0ms").is_err());
    }

    #[test]
    fn a_cas_may_be_quoted() {
        assert_eq!(cas("17"), Ok(Cas::new(17)));
        assert_eq!(cas("\"17\""), Ok(Cas::new(17)));
        assert!(cas("x").is_err() && cas("\"17").is_err());
    }

    #[test]
    fn values_are_json_unless_said_otherwise() {
        let plain = Meaning { string: false, bytes: false };
        assert_eq!(value(" {\"a\":1} ", plain).ok(), Some(Value::json_text(r#"{"a":1}"#)));
        let refused = value("hello", plain).expect_err("not JSON").to_string();
        assert!(refused.contains("--string"), "{refused}");
        assert_eq!(value("true", Meaning { string: true, bytes: false }).ok(), Some(Value::json_text("\"true\"")));
        assert_eq!(value("true", Meaning { string: false, bytes: true }).ok(), Some(Value::bytes("true")));
        assert!(value("@/no/such/file", plain).is_err());
    }
}
