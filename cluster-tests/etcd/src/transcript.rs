//! What was asked and answered in a case, step by step, and the files that it is kept in.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One step of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// `KV/Put`, or `POST /v3/kv/put`.
    pub call: String,
    /// What was sent; none where only an answer of a stream is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Value>,
    /// What came back; none where only a request of a stream is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Value>,
}

/// The steps of each case of a group, by its name.
pub type Group = BTreeMap<String, Vec<Step>>;

/// The text of a file: a line for each step.
pub fn to_text(group: &Group) -> String {
    let mut text = String::from("{\n");
    for (n, (case, steps)) in group.iter().enumerate() {
        let _ = writeln!(text, "{}: [", Value::from(case.as_str()));
        for (n, step) in steps.iter().enumerate() {
            let comma = if n + 1 < steps.len() { "," } else { "" };
            let _ = writeln!(text, "  {}{comma}", serde_json::to_string(step).expect("a step is JSON"));
        }
        let _ = writeln!(text, "]{}", if n + 1 < group.len() { "," } else { "" });
    }
    text.push_str("}\n");
    text
}

/// Reads such a text.
pub fn from_text(text: &str) -> Result<Group, serde_json::Error> {
    serde_json::from_str(text)
}
