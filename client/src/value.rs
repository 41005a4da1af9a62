//! A value to write.

use bytes::Bytes;
use serde::Serialize;

use crate::error::Error;

/// A value to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    pub(crate) data: Bytes,
    pub(crate) is_json: bool,
}

impl Value {
    /// Anything that has a JSON form.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        let data = serde_json::to_vec(value)
            .map_err(|source| Error::Decode { what: "the value has no JSON form".into(), source })?;
        Ok(Self { data: data.into(), is_json: true })
    }

    /// JSON text as it is. A write of text that is not JSON fails before anything is sent.
    pub fn json_text(text: impl Into<Bytes>) -> Self {
        Self { data: text.into(), is_json: true }
    }

    /// Bytes as they are.
    pub fn bytes(data: impl Into<Bytes>) -> Self {
        Self { data: data.into(), is_json: false }
    }
}
