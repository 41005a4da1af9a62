//! A value to write.

use bytes::Bytes;
use serde::Serialize;

use crate::error::Error;

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
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_client::Value;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Order {
    ///     status: &'static str,
    /// }
    /// assert_eq!(Value::json(&Order { status: "new" })?, Value::json_text(r#"{"status":"new"}"#));
    /// // JSON knows no such number.
    /// let keys = std::collections::BTreeMap::from([((1, 2), 3)]);
    /// assert!(Value::json(&keys).is_err());
    /// # Ok::<(), quorate_client::Error>(())
    /// ```
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        let data = serde_json::to_vec(value)
            .map_err(|source| Error::Decode { what: "the value has no JSON form".into(), source })?;
        Ok(Self { data: data.into(), is_json: true })
    }

    /// JSON text as it is. A write of text that is not JSON fails before anything is sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_client::Value;
    ///
    /// let value = Value::json_text(r#"{"n":18446744073709551615}"#);
    /// assert_ne!(value, Value::bytes(r#"{"n":18446744073709551615}"#));
    /// ```
    pub fn json_text(text: impl Into<Bytes>) -> Self {
        Self { data: text.into(), is_json: true }
    }

    /// Bytes as they are.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use quorate_client::Value;
    ///
    /// client.put("pictures/p1", Value::bytes(std::fs::read("p1.png").expect("there is one"))).await?;
    /// let picture = client.get("pictures/p1").await?.and_then(|entry| entry.bytes().ok().flatten());
    /// # Ok(())
    /// # }
    /// ```
    pub fn bytes(data: impl Into<Bytes>) -> Self {
        Self { data: data.into(), is_json: false }
    }
}
