//! What each tool does, by group.

pub mod claims;
pub mod elections;
pub mod entries;
pub mod locks;
pub mod reads;
pub mod sessions;
pub mod tasks;
pub mod watches;

use serde_json::{Map, Value};

/// The fields of an answer that is put together as JSON.
fn fields(answer: Value) -> Map<String, Value> {
    match answer {
        Value::Object(fields) => fields,
        other => unreachable!("an answer is an object, not {other}"),
    }
}
