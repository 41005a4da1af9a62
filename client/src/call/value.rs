//! A value to write.

use bytes::Bytes;
use serde::Serialize;

use crate::call::error::Error;

/// A value to write.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::{Op, Value};
/// use serde_json::json;
///
/// let document = Value::json(&json!({"status": "new", "lines": 2}))?;
/// // As it stands: the number keeps its digits.
/// let price = Value::json_text(r#"{"price":1.50}"#);
/// let picture = Value::bytes(vec![0x89, b'P', b'N', b'G']);
/// client.bulk().push(Op::put("o1", document)).push(Op::put("p1", price)).push(Op::put("i1", picture)).await?;
/// # Ok(())
/// # }
/// ```
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
