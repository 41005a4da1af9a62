//! The JSON of one operation, as the single form and the operation stream take it.
//!
//! Owns the borrowed twin of [`crate::api::Op`]: what is written goes into the text as it is, and is not taken apart first.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::api::{Cas, Guard, JsonText, Name, OpKind, TtlRule};
use crate::call::error::Error;
use crate::call::value::Value;

/// An operation to be written down. Fields as in [`crate::api::Op`], which a test holds it to.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct OpText<'a> {
    pub op: OpKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cas: Option<Cas>,
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<TtlRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<&'a Guard>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub prev: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
}

impl<'a> OpText<'a> {
    /// An operation of which only kind and key are said.
    pub fn new(op: OpKind, key: &'a Name) -> Result<Self, Error> {
        if key.is_empty() {
            return Err(Error::Invalid("a key has at least one character".into()));
        }
        Ok(Self {
            op,
            key: key.text(),
            key_base64: key.text().is_none().then(|| STANDARD.encode(key)),
            value: None,
            value_base64: None,
            patch: None,
            cas: None,
            condition: None,
            ttl_ms: None,
            ttl: None,
            lock_ms: None,
            wait_ms: None,
            session: None,
            guard: None,
            prev: false,
            dry_run: false,
            request_id: None,
        })
    }

    /// The text. `length` is what the values in it are known to take.
    pub fn write(&self, length: usize) -> Result<Bytes, Error> {
        /// What is not key and value: names, numbers, the request id.
        const REST: usize = 128;
        let mut text = Vec::with_capacity(REST + self.key.map_or(0, str::len) + length);
        serde_json::to_writer(&mut text, self)
            .map_err(|source| Error::Decode { what: "the operation has no JSON form".into(), source })?;
        Ok(text.into())
    }
}

/// JSON text that is about to stand inside other JSON: checked, since text that is not whole would become part of what is
/// around it.
pub(crate) fn checked_json(text: &[u8]) -> Result<&RawValue, Error> {
    serde_json::from_slice(text).map_err(|source| Error::Decode { what: "the value is not JSON".into(), source })
}

/// A patch as it stands in a request.
pub(crate) fn patch_text(patch: &Value) -> Result<JsonText, Error> {
    checked_json(&patch.data).map(|text| JsonText(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Op;

    #[test]
    fn what_is_written_is_what_nodes_read() {
        let key = Name::from("a \"b\"\nä");
        let mut op = OpText::new(OpKind::Replace, &key).expect("a key");
        assert_eq!(op.write(0).expect("has JSON"), r#"{"op":"replace","key":"a \"b\"\nä"}"#);
        op.value = Some(checked_json(br#" {"n": 1.50} "#).expect("JSON"));
        op.value_base64 = Some("AP8=".into());
        op.patch = Some(checked_json(b"{}").expect("JSON"));
        (op.lock_ms, op.wait_ms) = (Some(9), Some(8));
        let guard = Guard::election("cron", 17);
        (op.session, op.guard) = (Some("3"), Some(&guard));
        op.condition = Some(checked_json(b"[1]").expect("JSON"));
        op.ttl = Some(TtlRule::Keep);
        (op.cas, op.ttl_ms, op.prev, op.dry_run, op.request_id) = (Some(Cas::new(7)), Some(5), true, true, Some("id"));
        let read: Op =
            serde_json::from_slice(&op.write(0).expect("has JSON")).expect("no field that nodes do not know");
        assert_eq!(read.value.expect("is there").0.get(), r#"{"n": 1.50}"#);
        assert_eq!((read.op, &read.key), (OpKind::Replace, &key));
        let bytes = Name::from(b"a/\xFF");
        let text = OpText::new(OpKind::Get, &bytes).and_then(|op| op.write(0)).expect("a key");
        assert_eq!(text, r#"{"op":"get","key_base64":"YS//"}"#);
        assert_eq!(serde_json::from_slice::<Op>(&text).expect("an operation").key, bytes);
        assert_eq!(
            (read.value_base64, read.patch.map(|patch| patch.0.to_string())),
            (op.value_base64, Some("{}".into()))
        );
        assert_eq!((read.lock_ms, read.wait_ms), (Some(9), Some(8)));
        assert_eq!((read.session.as_deref(), read.guard.as_ref()), (op.session, op.guard));
        assert_eq!(read.condition.expect("is there").0.get(), "[1]");
        assert_eq!(read.ttl, Some(TtlRule::Keep));
        assert_eq!(
            (read.cas.as_deref(), read.ttl_ms, read.request_id.as_deref()),
            (Some("7"), op.ttl_ms, op.request_id)
        );
        assert!(read.prev && read.dry_run);
    }

    #[test]
    fn text_that_would_change_what_is_around_it_is_refused() {
        for bad in ["", "1,\"cas\":\"7\"", "1}", "{", "\"a\nb\"", "hello", "\"\u{0}\""] {
            assert!(checked_json(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(checked_json(b"\"\xff\"").is_err(), "not UTF-8");
        assert!(OpText::new(OpKind::Get, &Name::default()).is_err());
    }
}
