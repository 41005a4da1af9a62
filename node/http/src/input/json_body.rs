//! Bodies that are JSON, as the types of `quorate_api`.
//!
//! Owns how a body becomes such a type: strictly, with a pointer to what does not fit. What a value may be beyond its type is for the
//! handler to check, all of it at once, with [`Faults`].

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use quorate_api::{Applied, ErrorCode, InputFault, Object};
use quorate_node_core::gateway::failure::Failure;
use quorate_threads::background;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use crate::context::Context;
use crate::headers::{self, BodyKind};
use crate::input::body;
use crate::input::extract::Faults;
use crate::input::json::{self, JsonFault};

/// A body as it was read.
pub struct Json<T>(pub T);

/// A JSON body that may be empty, which stands for `{}`.
pub struct JsonOrNone<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Json<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        receive(request, false).await.map(Self)
    }
}

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for JsonOrNone<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        receive(request, true).await.map(Self)
    }
}

/// A body of which the handler decides what type it is.
pub struct JsonBytes(pub Bytes);

impl<S: Sync> FromRequest<S> for JsonBytes {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        receive_text(request, false).await.map(Self)
    }
}

/// A body that says nothing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Empty {}

async fn receive<T: DeserializeOwned>(request: Request, may_be_empty: bool) -> Result<T, Failure> {
    let text = receive_text(request, may_be_empty).await?;
    background::in_place(text.len(), || frame(&text))
}

/// Strict JSON, whatever it says.
async fn receive_text(request: Request, may_be_empty: bool) -> Result<Bytes, Failure> {
    let (parts, body) = request.into_parts();
    let Some(Context(context)) = parts.extensions.get::<Context>() else {
        return Err(Failure::new(ErrorCode::Internal, Applied::No, "the request has no context"));
    };
    let text = body::collect(context, body, usize::MAX).await?;
    if may_be_empty && text.is_empty() {
        return Ok(Bytes::from_static(b"{}"));
    }
    let kind = headers::json_kind(&context.head, "the body")?;
    Ok(text.slice_ref(json_of(kind, &text)?))
}

/// A text as this type. Parts that the type keeps as texts are to be checked by whoever reads them, unless all of it was before.
pub fn frame<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, Failure> {
    frame_without(text, &[])
}

/// The same where the type has these fields, too, which nobody is to be told of here.
pub fn frame_without<'a, T: Deserialize<'a>>(text: &'a [u8], untold: &[&str]) -> Result<T, Failure> {
    // What fits needs no trail of where it is.
    if let Ok(Object(value)) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(&mut deserializer);
    read.map_err(|error| misfit(error.path(), error.inner(), untold)).and_then(|Object(value)| {
        let end = deserializer.end();
        end.map(|()| value).map_err(|error| Failure::invalid("", error.to_string()))
    })
}

/// What was read at `pointer`; notes why where it was not.
pub fn noted<T>(read: Result<T, Failure>, pointer: &str, faults: &mut Faults) -> Option<T> {
    match read {
        Ok(part) => Some(part),
        Err(failure) => {
            let is_unknown = failure.code() == ErrorCode::UnknownField;
            for fault in failure.into_problem().errors {
                let pointer = format!("{pointer}{}", fault.pointer);
                if is_unknown { faults.add_unknown(pointer, fault.detail) } else { faults.add(pointer, fault.detail) }
            }
            None
        }
    }
}

/// Serde's words on a fault of the body, with a pointer to its field. A list of known fields leaves out `untold`.
fn misfit(path: &Path, error: &serde_json::Error, untold: &[&str]) -> Failure {
    let text = error.to_string();
    // The place in the text means nothing to who made it from an object.
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    let mut pointer: String = path.iter().map(segment).collect();
    let named = |prefix: &str| text.strip_prefix(prefix)?.split_once('`').map(|(name, _)| name.to_owned());
    let (code, detail) = if text.starts_with("unknown field `") {
        let known = text.split_once("expected ").map_or("none".to_owned(), |(_, known)| listed(known, untold));
        (ErrorCode::UnknownField, format!("no such field; there are: {known}"))
    } else if let Some(name) = named("missing field `") {
        pointer.push_str(&json::pointer(&name));
        (ErrorCode::InvalidArgument, "missing".into())
    } else if let Some(name) = named("duplicate field `") {
        pointer.push_str(&json::pointer(&name));
        (ErrorCode::InvalidArgument, "given more than once".into())
    } else {
        (ErrorCode::InvalidArgument, plain(text))
    };
    Failure::faults(vec![InputFault { pointer, detail }], code)
}

/// The fields that serde names, but those that are not told. A key or a prefix that is no text stands in a field of its own.
fn listed(known: &str, untold: &[&str]) -> String {
    let known = known.trim_start_matches("one of ").replace('`', "").replace(" or ", ", ");
    let told = known.split(", ").filter(|field| !untold.contains(field));
    let told = told.map(|field| match field {
        "key" | "prefix" => format!("{field}, {field}_base64"),
        _ => field.to_owned(),
    });
    told.collect::<Vec<_>>().join(", ")
}

fn segment(segment: &Segment) -> String {
    match segment {
        Segment::Seq { index } => format!("/{index}"),
        Segment::Map { key } => json::pointer(key),
        Segment::Enum { .. } | Segment::Unknown => String::new(),
    }
}

/// Words of JSON for those of Rust.
fn plain(text: &str) -> String {
    const WORDS: [(&str, &str); 7] = [
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected u8", "expected a whole number"),
        ("expected a map", "expected an object"),
        ("expected a sequence", "expected a list"),
        ("invalid type: map", "invalid type: an object"),
        ("invalid type: sequence", "invalid type: a list"),
    ];
    let mut text = match text.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected an object"),
        None => text.to_owned(),
    };
    for (rust, json) in WORDS {
        text = text.replace(rust, json);
    }
    text
}

/// The checked and trimmed JSON in a body.
pub fn json_of(kind: BodyKind, body: &[u8]) -> Result<&[u8], Failure> {
    match background::in_place(body.len(), || json::check(body)) {
        Ok(()) => Ok(json::trim(body)),
        // `curl -d` sends this type unasked. Where the body begins as JSON there is no doubt what is meant; else the type is wrong.
        Err(_) if kind == BodyKind::Form && !begins_as_json(body) => Err(not_a_form()),
        Err(JsonFault { pointer, detail }) => Err(Failure::invalid(pointer, detail)),
    }
}

/// The trimmed text of an object that is checked as it is read.
pub fn object_of(kind: BodyKind, body: &[u8]) -> Result<&[u8], Failure> {
    let text = json::trim(body);
    if kind == BodyKind::Form && text.first() != Some(&b'{') { Err(not_a_form()) } else { Ok(text) }
}

fn begins_as_json(body: &[u8]) -> bool {
    matches!(json::trim(body).first(), Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9'))
}

fn not_a_form() -> Failure {
    headers::unsupported(
        "the body says it is a form (what `curl -d` says unasked) and is not JSON; add `-H 'Content-Type: \
         application/json'` for JSON or `-H 'Content-Type: application/octet-stream'` for bytes",
    )
}

#[cfg(test)]
mod tests {
    use quorate_api::{AcquireRequest, FindRequest};

    use super::*;

    /// As a handler has it: strict JSON, and of this type.
    fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, Failure> {
        json::check(text).map_err(|JsonFault { pointer, detail }| Failure::invalid(pointer, detail))?;
        frame(text)
    }

    fn fault<T: DeserializeOwned>(text: &str) -> (ErrorCode, String, String) {
        let problem = read::<T>(text.as_bytes()).err().expect(text).into_problem();
        let fault = problem.errors.into_iter().next().expect("a fault");
        (problem.code, fault.pointer, fault.detail)
    }

    #[test]
    fn what_does_not_fit_is_pointed_at_in_words_of_json() {
        use ErrorCode::{InvalidArgument, UnknownField};
        for (text, code, pointer, words) in [
            (r#"{"session":"1","color":1}"#, UnknownField, "/color", "there are: session, wait_ms"),
            (r#"{"wait_ms":1}"#, InvalidArgument, "/session", "missing"),
            (r#"{"session":"1","wait_ms":"1"}"#, InvalidArgument, "/wait_ms", "expected a whole number"),
            (r#"{"session":"1","wait_ms":null}"#, InvalidArgument, "/wait_ms", "expected a whole number"),
            (r#"{"session":"1","wait_ms":-1}"#, InvalidArgument, "/wait_ms", "expected a whole number"),
            (r#"{"session":"1","mode":"odd"}"#, InvalidArgument, "/mode", "expected `exclusive` or `shared`"),
            (r#"{"session":"1","session":"2"}"#, InvalidArgument, "/session", "more than once"),
            ("[1]", InvalidArgument, "", "expected an object"),
            ("{", InvalidArgument, "", "EOF"),
        ] {
            let found = fault::<AcquireRequest>(text);
            assert_eq!((found.0, found.1.as_str()), (code, pointer), "{text}: {}", found.2);
            assert!(found.2.contains(words), "{text}: {}", found.2);
        }
        let found = fault::<FindRequest>(r#"{"prefix":"a","fields":["/a",7]}"#);
        assert_eq!(found.1, "/fields/1", "{}", found.2);
        let found = fault::<FindRequest>(r#"{"prefixes":["a"]}"#);
        assert!(found.2.starts_with("no such field; there are: prefix, prefix_base64, "), "{}", found.2);
    }

    #[test]
    fn of_the_fields_that_there_are_some_are_not_told() {
        let told = |untold: &[&str]| {
            frame_without::<AcquireRequest>(br#"{"color":1}"#, untold).err().map(|why| why.detail().to_owned())
        };
        let (all, some) = (told(&[]).expect("a fault"), told(&["wait_ms", "none"]).expect("a fault"));
        assert!(all.contains("session, wait_ms, ") && all.replace("wait_ms, ", "") == some, "{all}\n{some}");
    }
}
